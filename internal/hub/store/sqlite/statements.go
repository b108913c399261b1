package sqlite

// statement names a prepared statement.
type statement int

const (
	stBegin statement = iota
	stBeginRead
	stCommit
	stRollback
	stMaxSeq
	stSettled
	stSetSettled
	stLate
	stPutRev
	stDropRev
	stEpochs
	stPutEpoch
	stTeams
	stPutTeam
	stProject
	stProjects
	stTotals
	stPutProject
	stSetOldest
	stSetSpilled
	stSetLookup
	stDropProject
	stDropProjectCommits
	stDropProjectRevs
	stDropProjectHeads
	stDropProjectSpans
	stDropProjectRequests
	stSpans
	stPutSpan
	stDropSpans
	stHead
	stHeads
	stPutHead
	stSetHeaded
	stPutCommit
	stUpdateCommit
	stDropCommit
	stCommitBySeq
	stMetaBySeq
	stCommitsUp
	stMetasUp
	stMetasDown
	stRequest
	stRequestDays
	stNextRequestDay
	stRequestsOfDay
	stPutRequest
	stDropRequests
	stRedacted
	stRedactions
	stPutRedaction
	stSetting
	stSettingNames
	stPutSetting
	stDropSettings
	stPutToken
	stTokenExists
	stTokenByHash
	stTokens
	stRevokeToken
	stPutAudit
	stAudit
	stTeamAudit
	stRepeatAudit
	stAuditTimes
	stDropAudit
	numStatements
)

// sql returns the statement's text.
func (s statement) sql() string {
	return [numStatements]string{
		stBegin:     "BEGIN IMMEDIATE",
		stBeginRead: "BEGIN",
		stCommit:    "COMMIT",
		stRollback:  "ROLLBACK",
		stMaxSeq:    "SELECT coalesce(max(seq),0) FROM commits",

		stSettled:    "SELECT seq FROM settled",
		stSetSettled: "UPDATE settled SET seq=?",
		stLate:       "SELECT c.seq,c.rev,p.id,p.team,p.project FROM commits c JOIN projects p ON p.id=c.project WHERE c.seq>? ORDER BY c.seq",
		stPutRev:     "INSERT INTO revs(project,rev,seq) VALUES(?,?,?)",
		stDropRev:    "DELETE FROM revs WHERE project=? AND rev=?",

		stEpochs:   "SELECT epoch FROM epochs ORDER BY n",
		stPutEpoch: "INSERT INTO epochs(epoch,time) VALUES(?,?)",

		stTeams:               "SELECT team FROM teams ORDER BY team",
		stPutTeam:             "INSERT OR IGNORE INTO teams(team) VALUES(?)",
		stProject:             "SELECT id,created,oldest,spilled,lookup,headed FROM projects WHERE team=? AND project=?",
		stProjects:            "SELECT id,team,project FROM projects ORDER BY team,project",
		stTotals:              "SELECT count(*),coalesce(sum((SELECT max(rev) FROM commits WHERE project=p.id)),0) FROM projects p",
		stPutProject:          "INSERT INTO projects(team,project,created,oldest,spilled,lookup) VALUES(?,?,?,1,0,0)",
		stSetOldest:           "UPDATE projects SET oldest=? WHERE id=?",
		stSetLookup:           "UPDATE projects SET lookup=1 WHERE id=?",
		stSetSpilled:          "UPDATE projects SET spilled=? WHERE id=?",
		stDropProject:         "DELETE FROM projects WHERE id=?",
		stDropProjectCommits:  "DELETE FROM commits WHERE seq IN (SELECT seq FROM revs WHERE project=?)",
		stDropProjectRevs:     "DELETE FROM revs WHERE project=?",
		stDropProjectHeads:    "DELETE FROM heads WHERE project=?",
		stDropProjectSpans:    "DELETE FROM spans WHERE project=?",
		stDropProjectRequests: "DELETE FROM requests WHERE project=?",
		stSpans:               "SELECT epoch,through FROM spans WHERE project=? ORDER BY n",
		stPutSpan:             "INSERT INTO spans(project,n,epoch,through) VALUES(?,?,?,?)",
		stDropSpans:           "DELETE FROM spans WHERE project=?",

		stHead:      "SELECT seq,rev FROM revs WHERE project=? ORDER BY rev DESC LIMIT 1",
		stHeads:     "SELECT path,entry FROM heads WHERE project=?",
		stPutHead:   "INSERT OR REPLACE INTO heads(project,path,entry) VALUES(?,?,?)",
		stSetHeaded: "UPDATE projects SET headed=? WHERE id=?",

		stPutCommit:    "INSERT INTO commits(seq,project,rev,meta,content) VALUES(?,?,?,?,?)",
		stUpdateCommit: "UPDATE commits SET meta=?,content=? WHERE seq=?",
		stDropCommit:   "DELETE FROM commits WHERE seq=?",
		stCommitBySeq:  "SELECT seq,rev,meta,content FROM commits WHERE seq=? AND project=?",
		stMetaBySeq:    "SELECT seq,rev,meta FROM commits WHERE seq=? AND project=?",
		// The order of the join is fixed: revisions, and then their rows.
		stCommitsUp: "SELECT c.seq,c.rev,c.meta,c.content FROM revs r CROSS JOIN commits c ON c.seq=r.seq WHERE r.project=? AND r.rev BETWEEN ? AND ? ORDER BY r.rev",
		stMetasUp:   "SELECT c.seq,c.rev,c.meta FROM revs r CROSS JOIN commits c ON c.seq=r.seq WHERE r.project=? AND r.rev BETWEEN ? AND ? ORDER BY r.rev",
		stMetasDown: "SELECT c.seq,c.rev,c.meta FROM revs r CROSS JOIN commits c ON c.seq=r.seq WHERE r.project=? AND r.rev BETWEEN ? AND ? ORDER BY r.rev DESC",

		stRequest:        "SELECT entry FROM requests WHERE day IN (?,?,?) AND project=? AND key=?",
		stRequestDays:    "SELECT coalesce(min(day),0),coalesce(max(day),-1) FROM requests",
		stNextRequestDay: "SELECT day FROM requests WHERE day>? ORDER BY day LIMIT 1",
		stRequestsOfDay:  "SELECT key,entry FROM requests WHERE day=? AND project=?",
		stPutRequest:     "INSERT OR REPLACE INTO requests(day,project,key,entry) VALUES(?,?,?,?)",
		stDropRequests:   "DELETE FROM requests WHERE day<?",

		stRedacted:     "SELECT 1 FROM redactions WHERE team=? AND fingerprint=?",
		stRedactions:   "SELECT fingerprint FROM redactions WHERE team=? ORDER BY fingerprint",
		stPutRedaction: "INSERT OR IGNORE INTO redactions(team,fingerprint) VALUES(?,?)",

		stSetting:      "SELECT version,doc FROM settings WHERE scope=? AND name=?",
		stSettingNames: "SELECT name FROM settings WHERE scope=? ORDER BY name",
		stPutSetting:   "INSERT OR REPLACE INTO settings(scope,name,version,doc) VALUES(?,?,?,?)",
		stDropSettings: "DELETE FROM settings WHERE scope=?",

		stPutToken:    "INSERT INTO tokens(id,hash,team,project,name,role,created,expires,revoked) VALUES(?,?,?,?,?,?,?,?,?)",
		stTokenExists: "SELECT 1 FROM tokens WHERE id=? OR hash=?",
		stTokenByHash: "SELECT id,hash,team,project,name,role,created,expires,revoked FROM tokens WHERE hash=?",
		stTokens:      "SELECT id,hash,team,project,name,role,created,expires,revoked FROM tokens",
		stRevokeToken: "UPDATE tokens SET revoked=? WHERE id=?",

		stPutAudit:  "INSERT INTO audit(time,team,principal,action,subject,detail,request,count,last) VALUES(?,?,?,?,?,?,?,?,?) RETURNING id",
		stAudit:     "SELECT id,time,team,principal,action,subject,detail,request,count,last FROM audit WHERE id<? ORDER BY id DESC LIMIT ?",
		stTeamAudit: "SELECT id,time,team,principal,action,subject,detail,request,count,last FROM audit WHERE id<? AND team=? ORDER BY id DESC LIMIT ?",

		stRepeatAudit: "UPDATE audit SET count=count+?,last=? WHERE id=?",
		stAuditTimes:  "SELECT id,time FROM audit WHERE id>? ORDER BY id LIMIT ?",
		stDropAudit:   "DELETE FROM audit WHERE id=?",
	}[s]
}
