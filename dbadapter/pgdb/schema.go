package pgdb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
)

// format counts the forms that the tables have had.
const format = 5 // the schema below inserts it

// The schema. A namespace is numbered when it is first opened, and a number is never
// used twice. One whose id is NULL has been dropped and is being erased. The id of the
// store is random (folder.go).
//
// A record is its key, its value, and its head (dbadapter/internal/layout). idx is its index
// and sum the checksum of its bucket, sealed (record.go). All records of a bucket carry the
// same. Both stand in one index of the database, so that pairs are listed from there.
//
// log holds the changes of a commit, or a part of them, under the number of the last
// one. kept is the kept log, with the bytes that an entry counts for.
//
// Unsigned numbers of 64 bits are stored as signed ones of the same bits.
const schema = `
CREATE TABLE IF NOT EXISTS store (
	single boolean PRIMARY KEY DEFAULT true CHECK (single),
	id text NOT NULL,
	format integer NOT NULL,
	owner bytea NOT NULL,
	commits bigint NOT NULL,
	next integer NOT NULL
);
CREATE TABLE IF NOT EXISTS opened (
	single boolean PRIMARY KEY DEFAULT true CHECK (single),
	written bigint NOT NULL,
	timeline text NOT NULL
);
CREATE TABLE IF NOT EXISTS namespaces (
	number integer PRIMARY KEY,
	id bytea UNIQUE,
	head bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS records (
	namespace integer NOT NULL,
	key bytea NOT NULL,
	idx bigint NOT NULL,
	checksum bigint NOT NULL,
	head bytea NOT NULL,
	value bytea NOT NULL,
	PRIMARY KEY (namespace, key)
);
CREATE INDEX IF NOT EXISTS records_by_index ON records (namespace, idx) INCLUDE (checksum);
CREATE TABLE IF NOT EXISTS log (
	namespace integer NOT NULL,
	last bigint NOT NULL,
	entry bytea NOT NULL,
	PRIMARY KEY (namespace, last)
);
CREATE TABLE IF NOT EXISTS kept (
	namespace integer NOT NULL,
	why smallint NOT NULL,
	seq bigint NOT NULL,
	size bigint NOT NULL,
	entry bytea NOT NULL,
	PRIMARY KEY (namespace, why, seq)
);
CREATE TABLE IF NOT EXISTS summaries (
	namespace integer PRIMARY KEY,
	seq bigint NOT NULL,
	summary bytea NOT NULL
);
INSERT INTO store (id, format, owner, commits, next) VALUES ('%s', 5, '', 0, 1) ON CONFLICT DO NOTHING`

// tables are all tables, those that grow first.
var tables = []string{"records", "log", "kept", "summaries", "namespaces", "opened", "store"}

// setUp makes the schema and its tables where they are absent, and checks their
// format. The lock is held.
func setUp(ctx context.Context, conn *pgx.Conn, name string) error {
	found, err := readFormat(ctx, conn)
	if isState(err, "42P01", "3F000") { // undefined table, schema
		name := pgx.Identifier{name}.Sanitize()
		// A text without arguments goes as one transaction.
		_, err = conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+name+`; `+fmt.Sprintf(schema, newID()), pgx.QueryExecModeSimpleProtocol)
		if isState(err, "42501") { // insufficient privilege
			return fmt.Errorf("make the schema: %w; make it as another user, with: CREATE SCHEMA %s AUTHORIZATION …", err, name)
		}
		if err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
		found, err = readFormat(ctx, conn)
	}
	switch {
	case isState(err, "42703") || errors.Is(err, pgx.ErrNoRows): // undefined column
		return fmt.Errorf("%w: its tables are another program's; use another schema", dbadapter.ErrFormat)
	case err != nil:
		return fmt.Errorf("read the table of the store: %w", err)
	case found != format:
		return fmt.Errorf("%w: it has format %d, and this program reads and writes %d; export it with the program that wrote it and import it with this one, or use another schema",
			dbadapter.ErrFormat, found, format)
	}
	return nil
}

// newID is the id of a schema: 32 hexadecimal digits.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func readFormat(ctx context.Context, conn *pgx.Conn) (found int, err error) {
	err = conn.QueryRow(ctx, `SELECT format FROM store WHERE single`).Scan(&found)
	return found, err
}
