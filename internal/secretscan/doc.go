// Package secretscan is the secret guard: it says where a text holds a credential, and never says which.
//
// Hub and agent run the same guard, the agent before anything leaves the machine, the hub before anything is stored.
// It stands on the default rules of gitleaks v8, run by a matcher of our own, and adds rules for what those miss:
// credentials in URLs, passwords in assignments and in prose (English and Chinese), tokens split over lines, our own
// tokens. Before rules run, a copy of the text is normalised and encoded parts are decoded two levels deep, so that a
// zero-width character, a full-width letter or a base64 detour hides nothing. Line numbers always refer to the text as
// given.
//
// The guard fails closed: whatever it cannot judge (text too large, not UTF-8, rules that do not parse, a matcher that
// breaks) is an error, and an error means "not clean".
//
// Importing the package costs next to nothing: rules are parsed at the first scan, and each expression is compiled when
// a keyword of its rule is first seen.
package secretscan
