package instructions

// ReadGitWithin is ReadGit with another bound than a turn's.
var ReadGitWithin = readGit
