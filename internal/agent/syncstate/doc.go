// Package syncstate keeps what one machine must remember about its links: baseline,
// cursor, conflicts, trash, and the texts they refer to. It implements syncer.State.
//
// Each link has a directory, <state-dir>/links/<link-id>/ (0700), with one file,
// journal (0600). The journal begins with a snapshot, the state and its texts, and
// goes on with one record an update; texts lie in the record that brought them, under
// their etag. So an update is one write and one fsync. When too much of the file is
// out of date it is written anew, as a snapshot, beside the old one and put in its
// place by rename.
//
// Every record carries checksums, and how much of the file was known to be durable
// when it was written. That tells a torn tail, which nobody was promised and which is
// cut, from damage to what was promised: then nothing of the state is trusted, the
// journal is put aside under damaged-…, and the link starts over as Fresh, which costs
// a full comparison and loses no text of the workspace or the hub. The texts of
// conflicts and trash, which exist nowhere else and prove themselves by their etags,
// are carried over.
//
// Texts are not kept in memory. A reader may open the state while the daemon writes
// it; it sees some whole earlier state.
package syncstate
