package durable

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

// ErrDamaged: a small file of a node's folder is missing, damaged, or another node's. It
// is also dbadapter.ErrCorrupt, and its text says what to do.
var ErrDamaged = errors.New("a file of the data directory cannot be used")

// ErrOwner is ErrDamaged of a file that is another node's.
var ErrOwner = errors.New("another node's")

type damaged struct {
	text  string
	cause error // nil: none
}

func (d *damaged) Error() string { return d.text }

func (d *damaged) Unwrap() error { return d.cause }

func (d *damaged) Is(target error) bool {
	return target == ErrDamaged || target == dbadapter.ErrCorrupt
}

// Damaged makes an ErrDamaged; the text goes on from the file's path.
func Damaged(path, format string, args ...any) error {
	return &damaged{text: path + " " + fmt.Sprintf(format, args...)}
}

// Unusable adds what to do to the error of a file that is missing or damaged. What the
// system refuses stays the system's error: nothing says that the file is damaged.
func Unusable(path string, err error, todo string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &damaged{path + " is missing: " + todo, fs.ErrNotExist}
	case errors.Is(err, ErrDamaged):
		return &damaged{err.Error() + ": " + todo, err}
	}
	return err
}

// File is a small file of a node's folder, in an envelope that shows damage:
//
//	syncd file FORMAT KIND OWNER LENGTH CHECKSUM
//	content
//
// The checksum is the first 8 bytes of the SHA-256 of all else, in hexadecimal digits.
type File struct {
	Path string
	// Kind tells what is in it, in one word: a file under the name of another is damage.
	Kind string
	// Owner is the node that it belongs to, in one word; empty: any.
	Owner string
}

// format is that of the content, too.
const envelope, format = "syncd file ", "1"

// Save replaces the file, as WriteFile does.
func (f File) Save(content []byte) error {
	head := envelope + strings.Join([]string{format, f.Kind, cmp.Or(f.Owner, "-"), strconv.Itoa(len(content))}, " ")
	return WriteFile(f.Path, append([]byte(head+" "+checksum(head, content)+"\n"), content...))
}

func checksum(head string, content []byte) string {
	sum := sha256.Sum256(append([]byte(head+"\n"), content...))
	return hex.EncodeToString(sum[:8])
}

// Load reads what Save wrote, and says whose it is. The owner is empty where the file has
// no envelope, as older programs wrote it: the caller checks the content, and saves it anew.
func (f File) Load() (content []byte, owner string, err error) {
	b, err := Read(f.Path)
	if err != nil || !bytes.HasPrefix(b, []byte(envelope)) {
		return b, "", err
	}
	line, content, _ := bytes.Cut(b, []byte("\n"))
	words := strings.Split(string(line), " ") // as above
	last := len(words) - 1
	switch {
	case words[last] != checksum(strings.Join(words[:last], " "), content):
		return nil, "", Damaged(f.Path, "is damaged (its checksum does not match)")
	case words[2] != format:
		return nil, "", fmt.Errorf("%w: %s has format %s; this program reads %s: use the program that wrote it", dbadapter.ErrFormat, f.Path, words[2], format)
	case words[3] != f.Kind:
		return nil, "", Damaged(f.Path, "is another file (%s)", words[3])
	case f.Owner != "" && words[4] != f.Owner:
		return nil, "", &damaged{f.Path + " is another node's (" + words[4] + ")", ErrOwner}
	}
	return content, words[4], nil
}

// Read reads a file; a folder of its name is named as such.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is a folder, or another thing that is no file: move it away", path)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// ReadPrivate reads a file that only its owner may read.
func ReadPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no modes
		return nil, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it, and consider its content known", path, info.Mode().Perm())
	}
	return Read(path)
}

// AsideSuffix is in the names of files and folders that were set aside.
const AsideSuffix = ".damaged"

// SetAside gives a file or folder another name in the same folder, which it returns.
func SetAside(path string) (string, error) { return MoveAside(path, path+AsideSuffix) }

// MoveAside gives a file or a folder the name to, or, if there is one, that with a number. It
// returns the name.
func MoveAside(path, to string) (string, error) {
	first := to
	for i := 2; ; i++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
		to = first + "-" + strconv.Itoa(i)
	}
	return to, errors.Join(os.Rename(path, to), SyncDir(filepath.Dir(path)))
}
