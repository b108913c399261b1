-- One commit of 2 KB, row by row as the store writes it, for comparison.
\set p random(1,64)
\set f random(1,3200)
BEGIN;
SELECT id, head, head_id, oldest, files, bytes FROM memsvc.projects WHERE team='acme' AND project='p' || :p FOR NO KEY UPDATE \gset
SELECT e.epoch, r.key FROM (SELECT epoch FROM memsvc.epochs ORDER BY n DESC LIMIT 1) e LEFT JOIN memsvc.requests r ON r.project=:id AND r.key='\x00';
INSERT INTO memsvc.commits(project,rev,id,time,time_ns,bytes,principal,machine,client,session,message) VALUES (:id,:head+1,'0123456789abcdef0123456789abcdef',now(),0,2000,'bench','m','','','');
INSERT INTO memsvc.versions(project,rev,n,path,kind,etag,prev_etag,size,mod,mod_ns,renamed_from,content) VALUES (:id,:head+1,0,'f' || :f || '.md',1,decode(md5(:f::text)||md5(:f::text),'hex'),NULL,2000,now(),0,'',convert_to(repeat('x',2000),'UTF8'));
INSERT INTO memsvc.heads(project,path,rev,etag,size,deleted) VALUES (:id,'f' || :f || '.md',:head+1,decode(md5(:f::text)||md5(:f::text),'hex'),2000,false) ON CONFLICT(project,path) DO UPDATE SET rev=excluded.rev, etag=excluded.etag, size=excluded.size, deleted=excluded.deleted;
UPDATE memsvc.projects SET head=head+1, head_id='0123456789abcdef0123456789abcdef', files=files+1, bytes=bytes+2000 WHERE id=:id;
INSERT INTO memsvc.requests(project,key,digest,at,at_ns,created,rev,id) VALUES (:id,decode(md5(random()::text),'hex'),decode(md5('x')||md5('x'),'hex'),now(),0,true,:head+1,'0123456789abcdef0123456789abcdef');
COMMIT;
