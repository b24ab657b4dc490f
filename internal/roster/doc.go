// Package roster is the member list of a namespace: a function of a set of signed
// statements, so that nodes with the same statements have the same list, whatever
// the order in which these came.
package roster
