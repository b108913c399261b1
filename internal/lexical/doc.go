// Package lexical finds texts by their words, without a model: a tokenizer for
// English and for Chinese, Japanese and Korean, a BM25 index in memory, and excerpts
// around what was found. It is pure and deterministic: the same additions and the
// same query give the same hits in the same order.
package lexical
