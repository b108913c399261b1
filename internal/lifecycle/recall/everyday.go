package recall

// everyday and common are stems of English that stand in at least every tenth, and every
// fiftieth, of some 10,000 open-source packages and manual pages: counted in comments and
// documents, licences and the thesaurus left out. Met in a memory, they say less than a rare
// word, however few memories of a store hold them.
//
//nolint:misspell // stems, no words
const everyday = `
abov accord across actual additional address allow another application apply appropriat argument associat attribut automatically availabl avoid bas behavior below binary
bit blob both buffer built byt caller cannot caus character command common complet configur consider contain content context control convert copy correct correspond count
currently custom default defin describ description detail determin dev directly down either element els enabl encod enough ensur entry equal equivalent etc even except
exist expect explicitly extra fail final flag follow found futur given global group header host however identifier ignor implementation includ indicat info information
input insid instanc instead integer interfac internal invalid itself known later left length level logic long longer mad match max maximum metadata miss mod modul multipl
must namespac necessary net not onc operation optional original otherwis output parameter parent particular pass path perform pkg plac pointer prefix present prevent
process provid rang rather raw record referenc relat represent representation requir resourc respons root rul runtim saf section sent shar sid similar simpl siz skip slic
sourc special specific specification specify src standard stat status stor structur tag target todo token tool top total under underly uniqu unknown unless url usag used
useful valid well whether window written zero
`

//nolint:misspell // stems, no words
const common = `
ability abort absent absolut accept acceptabl accessibl accordingly acquir act action activ addition additionally addr addset adjust advanc affect age agent ahead aka
algorithm alia alias align alignment allocat allocation almost alon along alpha alternat alternativ alternatively although amazon ambiguous amd among analysis annotation
anonymous anymor anyway apimachinery apiserver apiversion appear append applicabl approach appropriately arbitrary arch archiv arg ascii ask assert assertion assign
assignment assum ast ation atomic attach attempt attr attrerrortyp author authority auto autogenerat automatic availability awar away badg basic basis begin behav
behaviour behind belong benefit besid beyond bin bind blank blog body bool boolean bottom bound boundary broken browser buf builder builtin calculat cancel cancell
candidat canonical cap capability capabl capacity captur car cardinality careful cast cat catch category cert certain chain chanc char checker checksum child children
choic chosen chunk clear cli clock clon closur cmd collect collection colon com combin combination comma commonly communicat communication community compact comparabl
comparison compiler completely completion complex compliant compress compression comput concatenat concept concret concurrently condition configurabl conflict conform conn
connect consecutiv consist consistency consistent consol constraint construct construction constructor consum consumption containerd continu contract contribut
contribution contributor controll controller convenienc convenient conversion copyright cor correctly cover cpus creation critical crypto ctx customiz cycl daemon darwin
deal debug dec declar declaration decod decoder deepcopy deepcopyinto defer definition delay deletion delimit deliver delta deny depend dependent depth deriv descriptor
desir despit destination detect detection deterministic devel developer development devic dial dictionary differ differently digest digit dir direct direction directiv
disabl discard discovery discussion disk display distinct distinguish distribut distribution divid division document dot draft driv driver dump duration dynamic
dynamically early easier easily easy echo edg edit edition effect effectiv effectively efficient effort emb emit encoder encounter encrypt endian enforc engin entir
entirely entity eof epoch equality errortypeattr errortypeother escap especially establish evaluat eventually exact exactly exceed exclud exclusiv exe exec execut
executabl execution exhaust existenc expand expensiv experimental explicit expos express expression ext extend extension external extract fact factory failur fall fallback
family far fast faster fatal fetch fewer figur filenam filepath filesystem fill filter finally fit fixm flow flush fmt fork former forward four fragment fram framework fre
freebsd friendly fully functionality further garbag gen general generally generation generator generic gid git globally gnu goal godoc goroutin got gracefully graph
greater grow guarante guaranteed guard guid guidelin gzip hack hard hash hav head health held helper helpful henc hid hidden high higher highest hint historical history
hit hom hostnam human ideally identical identify idl ids ietf img immediat immediately immutabl impact implicit implicitly imply important impossibl improv inbound
inclusiv incom incompatibl incorrect incr increas increment independent indic indirect individual infinit init initial initializ initialization inlin inner insensitiv
insert inspect inst install installation instantiat instruction instrument instrumentation intend intentionally interact interactiv interest intermediat internally
internet interpret interrupt interval introduc invocation invok involv ion ipv iso isolat item iterat iteration iterator job join kept kernel keyword knowledg kub lang
languag larger largest latter layer layout lazily leaf learn len let letter lib libc licens lifecycl likely limitation link listen listener literal littl localhost locally
locat location lock logical lookup loop loss low lower lowercas lowest mac maco maintain maintainer major malform man manag management manager mandatory manifest manner
manual manually mark marker marshal marshaljson matcher math matter meaningful meant measur mechanism media member met meta meter mib middl millisecond min minimal minimum
minor model modification modify mostly mount msg mutat mutex natural necessarily negativ neither nest newer newlin newly nodej normal normaliz normally notation notic
notification notify npmj numeric obj observ obtain occur occurrenc oci off official often older omit onto opaqu operat operator oppos opt optimiz optimization optionally
origin originally otel other outer outgo outsid overall overflow overhead overlap overrid overridden overview overwritten pad pair parallel param partial partially party
past pattern pdf peer pem pend percentag perhap period permit persistent perspectiv phas physical pid placeholder plain platform plugin plus png policy pop populat port
portion pos position positiv posix possibly potential potentially power practic preced precedenc precis precision precondition predefin prefer prepar presenc preserv
pretty previously primary printf println prior priority probably proc procedur proceed processor produc producer profil progress prompt propagat proper properly protect
protection protocol provider pseudo pur purpos qualify quick quickly quit quot rar reachabl readabl reader readonly real reasonabl receiv receiver recent recently recogniz
recommend recordset recover recursion recursiv recursively red redirect reduc ref refer reflect reflection regard regardless regex regexp region register registration
registry regular reject relationship relativ relevant rely remain remainder remember removal render repeat repeatedly replacement req reserv reset resolution resolv
resolver respect respectiv respectively respond responsibility restart restrict restriction retain retriev reus revers revision rfc risk rout row safely safety satisfy sav
scal scalar scan scenario schem scop sdk sec secondary secur seen segment selection selector semantic send sens separat separately separator sequenc serializ serialization
serv sery setup sha shield shift shorter shown shutdown sig signal signatur significant silently similarly simpler simplify simply simultaneously situation slash slightly
smallest socket softwar solution somewher specifically spent stability stabl stack standalon standardiz startup statistic stay stderr stdin stdout step storag str strategy
strict strictly stringer sub subject submit subresourc subsequent subset substitut succeed success successful successfully sufficient suffix suit suitabl sum supply suppos
suppress svg swap symbol symlink sync syntax sys syscall tab taken tar task tcp team telemetry templat temporary term terminat themselv therefor though thread threshold
throw thus timer timestamp tion titl tmp together trail transfer transform transition translat transport tre treat trigger trim trivial truncat trust tupl txt typical
typically ubuntu udp uid uint unabl unavailabl unchang uncompress unconditionally undefin understand unexpect unexport unfortunately unicod unimplement union uniquely unix
unlik unlikely unmarshal unmarshaljson unmarshall unmodify unnecessary unsaf unset unsign unspecify unsupport upon upper upstream uri usabl usernam usr usual usually utf
utility uuid val validat validation validity variant various vary vector vendor verification verify view visibl visit volum walk warn watch weight whatever whenever
whitespac whol whos wid width wildcard win wir wish word worker workflow world worth wrap wrapper writer yes yield yml zip
`
