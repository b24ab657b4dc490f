// Package backup is the layout of a folder of backups: generations of files, each
// with a manifest that names and hashes them.
//
//	backup.json            whose backups these are, and the last generation
//	000001/manifest.json   what, of when, sizes, SHA-256
//	000001/store           a copy of the store, whole or what has changed since its base
//	000001/node/…          the node's other files
//	000002.partial/        a generation that is being made, or was cut short
//
// A generation is made next to the others under a name that ends in .partial. When all
// its files are on the disk the manifest follows, then the folder gets its name, then
// backup.json names it. A crash at any point leaves the generations before it as they
// were. The next generation clears away what is partial. Take makes a generation of a node
// that runs: the files and the store are of one moment, and copied while the node works.
//
// Each of the two JSON files carries a hash of itself, so that a flipped bit
// anywhere in a folder is found. The hashes find damage; they do not defend
// against an adversary that can write to the folder. All files are the owner's
// only: the node's key and the namespaces' secrets are among them.
package backup
