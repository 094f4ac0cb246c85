// Built by scripts/build-lua.mjs from lua/*.lua. Do not edit: change the Lua and run `npm run lua`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

export const functionLibrary = 'headgate_526f7b93'

const names = `local call,aI,format,find=redis.call,redis.pcall,string.format,string.find
local ceil,floor=math.ceil,math.floor`

const clock_read = `local d,D=bh,0
if d and d~=''then
d,D=d+0,600000
else
local aE=call('TIME')
d=aE[1]*1000000+aE[2]
end`

const clock_text = `local function S(ah)
return format('%d',ah)
end
local function aG(b,aH)
call('PEXPIRE',b,S(ceil(aH/1000)+D))
end`

const timed = `${names}
local bh=ARGV[1]
${clock_read}
${clock_text}`

const fields = `${names}
local aV,aK=math.huge,9007199254740991
local E='HEADGATE_BAD_STATE the key holds something Headgate did not write'
local function T(J)
return J and#J<=16 and find(J,'^%d+$')and J+0 or nil
end`

const counter_locals = `local an,aR,bi,bm
local w,p,k,au,R`

const parts_locals = `local t,ai,aC,aW,k,H,V,K,N,i,m`

const bucket_locals = `local s,U,am,O,aZ,ac,X`

const log_locals = `local r,i,L,W,ag,v,ao,ax,aL`

const check_open = `b,c,l=KEYS[cm+ar],cc[ar],bX[ar]
local ah=4*c-1
G,e,f=br[ah],br[ah+1],br[ah+2]`

const counter_prepare = `an=d-d%f
aR=format('%d',an)`

const check_counter = `an,aR,bi=bz[c],by[c],bE[c]
bm=aS[c]
if not an then
${counter_prepare}
bz[c],by[c]=an,aR
end`

const hash_empty = `if h.err then
j=h.err
elseif I or call('EXISTS',b)==1 then
j=E
end`

const fraction_floor = `local M=aM*aX
if M<=aK then
M=floor(M/aq)
else
local ba,aD,Q=0,aM,268435456
M=0
while Q>=1 do
local aY=floor(aD/Q)
aD=aD-aY*Q
local bb=ba*128+aY*aX
local t=floor(bb/aq)
M=M*128+t
ba=bb-t*aq
Q=Q/128
end
end`

const counter_load = `local h,B
if not I or call('EXISTS',b)==1 then
h=aI('HMGET',b,'start','current','previous')
B=h[1]
end
g,k,w,p,au=d,an,0,0,true
if B==aR then
w=h[2]and#h[2]<=16 and find(h[2],'^%d+$')and h[2]+0
p,au=h[3]=='0'and 0 or T(h[3]),false
if not(w and p)then
j=E
end
elseif B and B==(bi or format('%d',an-f))then
bi,p=B,h[2]and#h[2]<=16 and find(h[2],'^%d+$')and h[2]+0
if not(p and(h[3]=='0'or T(h[3])))then
j=E
end
elseif B then
local x,m,aO=T(B),T(h[2]),T(h[3])
if not(x and m and aO)then
j=E
else
if x>d and x-d<=f-ceil(f/e)then
g,k=x,x-x%f
end
if x==k then
w,p,au=m,aO,false
elseif x+f==k then
p=m
end
end
elseif h then
${hash_empty}
end
I=not B
if not j then
R=0
if p>0 then
local u=g-k
R=p*(f-u)
if R<=aK then
R=ceil(R/f)
else
local aM,aX,aq=p,u,f
${fraction_floor}
R=p-M
end
end
end`

const counter_wait = `local ci=e-w-l
if R<=ci then
C=0
elseif l>e then
C=aV
else
local aM,aX,aq=ci,f,p
C=k-d
if ci<0 then
aM,aq,C=e-l,w,C+f
end
if aq>aM then
${fraction_floor}
C=C+f-M
end
end`

const clock_now_text = `A=A or format('%d',d)`

const bucket_prepare = `ac=e*1000000
${clock_now_text}
X=format('%d',2000*ceil(e/f)+D)`

const check_bucket = `ac,X,af=e*1000000,aS[c],ARGV[ah+1]
if not X then
${bucket_prepare}
aS[c]=X
end`

const bucket_load = `local h,z,aF
O=nil
if not I or call('EXISTS',b)==1 then
h=aI('HMGET',b,'tokens','lastRefill','capacity')
z,aF,O=h[1],h[2],h[3]
end
s,U,am,g,aZ=0,0,0,d,false
if z then
local bA=#z<=17 and find(z,'^%d+%.?%d*$')and z+0
local at=aF and#aF<=16 and find(aF,'^%d+$')and aF+0
local bv=O==af and e or T(O)
if not(bA and at and bv)then
j=E
elseif at<=d or at-d<=(e-1)*1000000/f then
am,g=at,at>d and at or d
local bB=bA*1000000+0.5
U=bv*1000000-(bB-bB%1)
if U>ac then
U,aZ=ac,true
end
local bw=(g-am)*f
s=U-(bw-bw%1)
if s<0 then
s=0
end
end
elseif h then
${hash_empty}
end
I=not z`

const bucket_refill = `local u=ceil(aA/f)
while floor(u*f)<aA do
u=u+1
end
while u>0 and floor((u-1)*f)>=aA do
u=u-1
end`

const bucket_wait = `local cg=(e-l)*1000000
if s<=cg then
C=0
elseif cg<0 then
C=aV
else
local aA=U-cg
${bucket_refill}
C=am+u-d
end`

const log_prepare = `${clock_now_text}
ax=format('%d',d-f)
aL=format('%d',ceil(f/1000)+D)`

const check_log = `ax,aL=bE[c],aS[c]
if not ax then
${log_prepare}
bE[c],aS[c]=ax,aL
end`

const log_load = `local m=aI('ZRANGE',b,'-1','-1','WITHSCORES')
r,i,L,W,ag,v,ao,g=0,0,0,nil,false,nil,false,d
if m.err then
j=m.err
elseif m[1]then
r,v=#m[1]==13 and find(m[1],'^%d+$')and m[1]+0,m[2]+0
if not(r and v>=0 and v<=aK and v%1==0)then
j=E
elseif v>d+f then
r,ao=0,true
else
if v>d then
g=v
end
if v<=g-f then
L,W,ag=r,v,true
else
local bn=g==d and ax or format('%d',g-f)
local av=call('ZREVRANGEBYSCORE',b,bn,'-inf','WITHSCORES','LIMIT','0','2')
if av[1]then
L,W,ag=#av[1]==13 and T(av[1]),av[2]+0,av[3]
if not L then
j=E
end
end
end
i=r-(L or 0)
end
end`

const log_wait = `if l>e then
C=aV
elseif i+l<=e then
C=0
else
local bj=r+l-e
local aT=call('ZCOUNT',b,'-inf',format('%d',g-f))
local bC=call('ZRANGE',b,aT,aT,'WITHSCORES')
local bk=T(bC[1])
if bk and bk<bj then
local ca=call('ZCARD',b)-1
aT=aT+1
while bk and aT<ca do
local bR=floor((aT+ca)/2)
bk=T(call('ZRANGE',b,bR,bR)[1])
if bk and bk>=bj then
ca=bR
else
aT=bR+1
end
end
bC=call('ZRANGE',b,aT,aT,'WITHSCORES')
end
if bk then
C=tonumber(bC[2])+f-d
else
j=E
end
end`

const parts_prepare = `t=ceil(f/ae)
ai=d-d%t
aC=format('%d',ai)`

const check_parts = `t,ai,aC,aW=co[c],bz[c],by[c],aS[c]
ae=br[ah+3]
if not t then
${parts_prepare}
co[c],bz[c],by[c]=t,ai,aC
end`

const parts_load = `local h,B
if not I or call('EXISTS',b)==1 then
h=aI('HMGET',b,'start','counts')
B=h[1]
end
g,k,H,V,K,N,i,m=d,ai,nil,nil,0,ae+1,0,0
if B then
local x=B==aC and ai or T(B)
V=h[2]
local bq=x and V and find(V,'^%d[%d,]*$')
if bq then
bq,H=pcall(cjson.decode,'['..V..']')
end
if not bq then
j=E
elseif x-d<=2*f-(ae+1)*t then
if x>d then
g,k=x,x-x%t
end
N=(k-x)/t
if N<=ae then
K=ae+1-N
if K>#H then
K=#H
end
for q=1,K do
i=i+H[q]
end
if N==0 then
m=H[1]
end
if i>aK then
j=E
end
end
end
elseif h then
${hash_empty}
end
I=not B`

const concurrency = `local function cp()
local aj={}
local bH,bo=1000000,2
local function ap(o,aJ)
return aJ==0 and string.format('%016d',o)or string.format('%016d.%d',o,aJ)
end
local function bs(aU)
return tonumber(string.match(aU,'^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$')
or string.match(aU,'^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)%.%d+$'))
end
function aj.load(b,c)
local ak=redis.pcall('ZRANGE',b,0,0,'WITHSCORES')
if ak.err then
return nil,ak.err
end
local a={b=b,i=0,Y=0,g=d,ay='('..S(d)}
a.aw=d+bo*c.window_us
a.aN=S(a.aw)
if not ak[1]then
return a
end
local bg=string.match(ak[1],'^reset:(%d+)$')
a.Y=bg and tonumber(bg)or 0
if not(bg or bs(ak[1]))then
return nil,E
end
a.i=redis.call('ZCOUNT',b,a.ay,a.aN)
a.dead=redis.call('ZCARD',b)-a.i>(bg and 1 or 0)
return a
end
function aj.C(c,a,l)
if l>c.c then
return aV
end
local bj=a.i+l-c.c
if bj<=0 then
return 0
end
local Q=redis.call('ZRANGEBYSCORE',a.b,a.ay,a.aN,'WITHSCORES','LIMIT',bj-1,1)
return Q[2]and math.min(bH,tonumber(Q[2])-d)or bH
end
function aj.tell(c,a)
if a.i==0 then
return c.c,0
end
local bd=redis.call('ZREVRANGEBYSCORE',a.b,a.aN,a.ay,'WITHSCORES','LIMIT',0,1)
return math.max(0,c.c-a.i),tonumber(bd[2])-d
end
local function bL(a)
if a.dead then
redis.call('ZREMRANGEBYSCORE',a.b,0,S(d))
redis.call('ZREMRANGEBYSCORE',a.b,'('..a.aN,'+inf')
a.dead=false
end
end
local function bN(c,a,o,e)
local as=S(d+c.window_us)
for aJ=0,e-1 do
redis.call('ZADD',a.b,as,ap(o,aJ))
end
aG(a.b,bo*c.window_us)
end
function aj.charge(c,a,l)
bL(a)
local o=math.max(d,a.Y+1)
while redis.call('ZSCORE',a.b,ap(o,0))do
o=o+1
end
bN(c,a,o,l)
a.i=a.i+l
return o
end
local function bM(a,o,e)
local P=0
while redis.call('ZSCORE',a.b,ap(o,P))do
P=P+1
end
local F=math.min(e,P)
for aJ=P-F,P-1 do
redis.call('ZREM',a.b,ap(o,aJ))
end
return F
end
function aj.charge_beyond()end
local function cl(a,o)
local as=tonumber(redis.call('ZSCORE',a.b,ap(o,0))or nil)
return as and as>d and as<=a.aw
end
function aj.refund(bI,a,e,o)
if o then
return cl(a,o)and bM(a,o,e)or 0
end
local n=math.min(e,a.i)
local F=n
while n>0 do
local ak=redis.call('ZRANGEBYSCORE',a.b,a.ay,a.aN,'LIMIT',0,1)
n=n-bM(a,bs(ak[1]),n)
end
return F
end
function aj.renew(c,a,e,o)
bL(a)
local P=0
while redis.call('ZSCORE',a.b,ap(o,P))do
P=P+1
end
if P==0 and a.i+e>c.c then
return 0
end
bN(c,a,o,P>0 and P or e)
return 1
end
function aj.cr(c,a)
local aw=a.Y
for bI,aU in ipairs(redis.call('ZRANGE',a.b,0,-1))do
aw=math.max(aw,bs(aU)or 0)
end
redis.call('DEL',a.b)
redis.call('ZADD',a.b,-1,'reset:'..S(aw))
aG(a.b,bo*c.window_us)
end
return aj
end`

const counter_charge = `w=w+l
if au then
bm=bm or format('%d',ceil(2*f/1000)+D)
local cw,ad=aR,bm
if k~=an then
cw=format('%d',k)
ad=format('%d',ceil(((k>d and k-d or 0)+2*f)/1000)+D)
end
local cN=p==0 and'0'or format('%d',p)
call('HSET',b,'start',cw,'current',format('%d',w),'previous',cN)
call('PEXPIRE',b,ad)
else
call('HSET',b,'current',format('%d',w))
end`

const counter_left = `n=e-w-R`

const bucket_save = `U,am=s,g
local az=ac-s
local aB=az%1000000
local z,aa,ad=nil,A,X
if aB==0 then
z=format('%d',az/1000000)
else
z=format('%d.%06d',(az-aB)/1000000,aB)
end
if g~=d then
aa=format('%d',g)
ad=format('%d',X+ceil((g-d)/1000))
end
if O==af then
call('HSET',b,'tokens',z,'lastRefill',aa)
else
call('HSET',b,'tokens',z,'lastRefill',aa,'capacity',af)
O=af
end
call('PEXPIRE',b,ad)`

const bucket_charge = `s=s+l*1000000
${bucket_save}`

const bucket_left = `n=ac-s`

const log_charge = `if ao then
call('ZADD',b,'0','0000000000000')
call('DEL',b)
ao=false
elseif r+l>9999999999999 then
local ab=call('ZRANGEBYSCORE',b,'('..format('%d',g-f),'+inf','WITHSCORES')
call('ZADD',b,'0','0000000000000')
call('DEL',b)
for q=1,#ab,2 do
local bY=(tonumber(ab[q])or L)-L
call('ZADD',b,ab[q+1],format('%013d',bY))
end
r,L,W,ag=i,0,nil,false
end
r,i,v=r+l,i+l,g
local aa,ad=A,aL
if g~=d then
aa=format('%d',g)
ad=format('%d',ceil((g-d+f)/1000)+D)
end
call('ZADD',b,aa,format('%013d',r))
if ag then
call('ZREMRANGEBYSCORE',b,'-inf','('..format('%d',W))
end
call('PEXPIRE',b,ad)`

const log_left = `n=e-i`

const parts_save = `local J=format('%d',m)
if N>0 then
J=K==0 and J or J..string.rep(',0',N-1)..','..table.concat(H,',',1,K)
elseif K>1 then
J=J..string.sub(V,find(V,',',1,true),-1)
end
call('HSET',b,'start',k==ai and aC or format('%d',k),'counts',J)
if N>0 then
aW=aW or format('%d',ceil(2*f/1000)+D)
call('PEXPIRE',b,k<=d and aW
or format('%d',ceil((k-d+2*f)/1000)+D))
end`

const counter_tell = `aQ=e-w-R
if aQ<0 then
aQ=0
end
if w>0 then
Y=k+2*f-d
elseif p>0 then
Y=k+f-d
else
Y=0
end`

const bucket_tell = `aQ,Y=e,0
if s>0 then
local aA=U
${bucket_refill}
aQ,Y=e-ceil(s/1000000),am+u-d
end`

const log_tell = `aQ=i<e and e-i or 0
Y=i==0 and 0 or v+f-d`

const questions = `local bt,bD,bV,bU=1,2,3,4
${fields}
local bh=ARGV[1]
${clock_read}
local b,c,l,G,e,af,f,ae
local g,j,C,n,aQ,Y,A
${counter_locals}
${parts_locals}
${bucket_locals}
${log_locals}
local bz,by,aS,bE,co,bS={},{},{},{},{},{}
local aP,I={},nil
local bT,cB,bl,bG
local cR={}
local br,Z={0,0},3+4*ARGV[2]
for q=3,Z-1 do
br[q]=ARGV[q]+0
end
local cc,bX,cn,bu,cy,bp={},{},{},0,0,0
local al,bf,cm={d},1,0
while ARGV[Z]do
local ce=ARGV[Z]+0
local cA=ce<=0
Z=Z+1
if cA then
cc[1],bX[1],cn[1]=-ce,1,1
if ce==0 then
cc[1],bX[1]=ARGV[Z]+0,ARGV[Z+1]+0
Z=Z+2
end
ce,bu,cy,bp=1,1,1,1
else
bu,bp=ARGV[Z]+0,0
for bF=1,bu+1 do
local cM=ARGV[Z+1]+0
Z=Z+1
for dd=1,cM do
bp=bp+1
cc[bp],bX[bp]=ARGV[Z+1]+0,ARGV[Z+2]+0
Z=Z+2
if bF>bu then
cn[bu+dd]=bp
end
end
if bF>bu then
cy=bu+cM
else
cn[bF]=bp
end
end
Z=Z+1
end
for bI=1,ce do
local cq,bW,bd=bf+1,-1,0
if not cA then
bf=cq
end
for bF=1,cy do
local ak,cj,cz=bd+1,true,bF>bu
bd=cn[bF]
if cz or bW<0 then
j=nil
for ar=ak,bd do
${check_open}
if G==bD then
${check_counter}
I=bS[c]
${counter_load}
bS[c]=I
if not j then
${counter_wait}
end
elseif G==bU then
${check_bucket}
I=bS[c]
${bucket_load}
bS[c]=I
if not j then
${bucket_wait}
end
elseif G==bt then
${check_log}
${log_load}
if not j then
${log_wait}
end
elseif G==bV then
${check_parts}
I=bS[c]
${parts_load}
bS[c]=I
if not j then
if l>e then
C=aV
elseif i+l<=e then
C=0
else
local bZ,q=i+l-e,K
while q>1 and bZ>H[q]do
bZ,q=bZ-H[q],q-1
end
C=k+(ae+2-q-N)*t-d
end
end
else
if not bT then
${clock_text}
${concurrency}
bT,cB=cp(),{}
end
bl=cB[c]
if not bl then
bl={c=e,window_us=f}
cB[c]=bl
end
bG,j=bT.load(b,bl)
if bG then
C=bT.C(bl,bG,l)
end
end
if j then
break
end
cj=cj and C==0
if ak<bd then
if G==bD then
aP[ar]={w,p,k,au,R,g}
elseif G==bU then
aP[ar]={s,U,am,O,g}
elseif G==bt then
aP[ar]={r,i,L,W or false,ag,v or false,ao,g}
elseif G==bV then
aP[ar]={H or false,V or false,K,N,i,m,k,g}
else
aP[ar]={bl,bG}
end
cR[ar]=C
end
end
if j and not cz then
for q=bf,cq,-1 do
al[q]=nil
end
bW,bf={j},cq
al[bf]=bW
break
elseif j then
bf=bf+1
al[bf]={0,0,0,-1}
else
for ar=ak,bd do
if ak<bd then
${check_open}
if G==bD then
${check_counter}
local a=aP[ar]
w,p,k,au,R,g=a[1],a[2],a[3],a[4],a[5],a[6]
elseif G==bU then
${check_bucket}
local a=aP[ar]
s,U,am,O,g=a[1],a[2],a[3],a[4],a[5]
elseif G==bt then
${check_log}
local a=aP[ar]
r,i,L,W,ag=a[1],a[2],a[3],a[4],a[5]
v,ao,g=a[6],a[7],a[8]
elseif G==bV then
${check_parts}
local a=aP[ar]
H,V,K,N,i,m=a[1],a[2],a[3],a[4],a[5],a[6]
k,g=a[7],a[8]
else
bl,bG=aP[ar][1],aP[ar][2]
end
C=cR[ar]
end
bf=bf+1
local y=-1
if cj and cV and l>0 then
n=nil
if G==bD then
${counter_charge}
${counter_left}
aS[c],bE[c]=bm,bi
elseif G==bU then
${bucket_charge}
${bucket_left}
elseif G==bt then
${log_charge}
${log_left}
elseif G==bV then
i,m=i+l,m+l
${parts_save}
${log_left}
aS[c]=aW
else
g=bT.charge(bl,bG,l)
end
y=g
end
if y==d and n then
al[bf]=n
else
if G==bD then
${counter_tell}
elseif G==bU then
${bucket_tell}
elseif G==bt then
${log_tell}
elseif G==bV then
aQ,Y=i<e and e-i or 0,0
if m>0 then
Y=k+(ae+1)*t-d
else
for q=1,K do
if H[q]>0 then
Y=k+(ae+2-q-N)*t-d
break
end
end
end
else
aQ,Y=bT.tell(bl,bG)
end
al[bf]={C==aV and-1 or C,aQ,Y,y}
end
end
if cj and not cz then
bW=bF-1
end
end
end
end
cm=cm+bp
if not cA then
al[cq]=bW
end
end
end
return al`

const checks = `local aV,aK=math.huge,9007199254740991
local E='HEADGATE_BAD_STATE the key holds something Headgate did not write'
local function T(J)
return J and#J<=16 and find(J,'^%d+$')and J+0 or nil
end
local function ch(c,i)
return math.max(0,math.min(2*c.c,4294967295)-i)
end
local function cI()
local bQ={}
function bQ.load(b,c)
local f,g,j,A=c.window_us,nil,nil,nil
${log_locals}
${log_prepare}
${log_load}
if j then
return nil,j
end
return{
b=b,
r=r,
i=i,
ag=ag,
L=L,
W=W,
v=v,
ao=ao,
g=g,
}
end
local function ap(r)
return format('%013d',r)
end
function bQ.charge_beyond(c,a,e)
local l,b,f,g=math.min(e,ch(c,a.i)),a.b,c.window_us,a.g
local r,i,L,W=a.r,a.i,a.L,a.W
local ag,v,ao=a.ag,a.v,a.ao
local A,ax,aL
if l>0 then
${log_prepare}
${log_charge}
end
end
function bQ.refund(c,a,e,y)
if a.i==0 then
return 0
end
local bn=a.g-c.window_us
if y and y<=bn then
return 0
end
local ay=y and S(y)or'('..S(bn)
local ab=call('ZRANGEBYSCORE',a.b,ay,'+inf','WITHSCORES')
if#ab==0 or(y and tonumber(ab[2])~=y)then
return 0
end
local cf=call('ZRANK',a.b,ab[1])
local aO=cf>0 and tonumber(call('ZRANGE',a.b,cf-1,cf-1)[1])or 0
if y and tonumber(ab[1])==aO then
return 0
end
local n,cb,cu=e,aO,aO
call('ZREMRANGEBYSCORE',a.b,ay,'+inf')
if a.W then
call('ZREMRANGEBYSCORE',a.b,'-inf',a.W)
call('ZADD',a.b,0,ap(a.L))
end
for q=1,#ab,2 do
local r,cx=tonumber(ab[q]),tonumber(ab[q+1])
local l=r-cu
local F=0
if not y or cx==y then
F=math.min(n,l)
end
cu=r
n=n-F
if F<l or l==0 then
cb=cb+l-F
call('ZADD',a.b,cx,ap(cb))
end
end
aG(a.b,math.max(0,a.v-d)+c.window_us)
return e-n
end
return bQ
end
local function cH()
local bK={}
function bK.load(b,c)
local e,f,g,j,I=c.c,c.window_us,nil,nil,nil
${counter_locals}
${counter_prepare}
${counter_load}
if j then
return nil,j
end
return{
b=b,
w=w,
p=p,
R=R,
g=g,
k=k,
au=au,
}
end
local function bx(c,a)
local k,w,p=S(a.k),S(a.w),S(a.p)
call('HSET',a.b,'start',k,'current',w,'previous',p)
if a.au then
aG(a.b,math.max(0,a.k-d)+2*c.window_us)
end
end
function bK.charge_beyond(c,a,e)
local l=math.min(e,ch(c,a.w+a.R))
if l>0 then
a.w=a.w+l
bx(c,a)
end
end
function bK.refund(c,a,e,y)
local ct=y and y-y%c.window_us
local n=e
if not y or ct==a.k-c.window_us then
local F=math.min(n,a.p)
a.p,n=a.p-F,n-F
end
if not y or ct==a.k then
local F=math.min(n,a.w)
a.w,n=a.w-F,n-F
end
if n<e then
bx(c,a)
end
return e-n
end
return bK
end
local function cJ()
local bc={}
function bc.load(b,c)
local f,ae,g,j,I=c.window_us,c.buckets,nil,nil,nil
${parts_locals}
${parts_prepare}
${parts_load}
if j then
return nil,j
end
return{
b=b,
H=H,
V=V,
K=K,
N=N,
i=i,
m=m,
t=t,
k=k,
g=g,
}
end
local function bx(c,a)
local f,ae,b,k,N=c.window_us,c.buckets,a.b,a.k,a.N
local H,V,K,m=a.H,a.V,a.K,a.m
local t,ai,aC,aW
${parts_prepare}
${parts_save}
end
function bc.charge_beyond(c,a,e)
local l=math.min(e,ch(c,a.i))
if l>0 then
a.m=a.m+l
bx(c,a)
end
end
function bc.refund(c,a,e,y)
local cF=y and(a.k-(y-y%a.t))/a.t
local n=e
for q=a.K,1,-1 do
if not y or cF==q-1+a.N then
local F=math.min(n,a.H[q])
a.H[q]=a.H[q]-F
n=n-F
end
end
if n<e then
a.V=table.concat(a.H,',',1,a.K)
a.m=a.N==0 and a.H[1]or 0
bx(c,a)
end
return e-n
end
return bc
end
local function cG()
local bJ={}
function bJ.load(b,c)
local e,af,f,g,j=c.c,c.limit_text,c.refill_per_second,nil,nil
local A,I
${bucket_locals}
${bucket_prepare}
${bucket_load}
if j then
return nil,j
end
c.aH=2000000*ceil(e/f)
return{b=b,s=s,g=g,O=O,aZ=aZ}
end
function bJ.charge_beyond(c,a,cL)
local b,g,O,s=a.b,a.g,a.O,a.s+cL*1000000
local e,af,f,U,am=c.c,c.limit_text,c.refill_per_second
local ac,A,X
if e==0 then
return
end
${bucket_prepare}
if s>e*1000000 then
local aA=s-e*1000000
${bucket_refill}
g=d+math.min(floor((e-1)*1000000/f),g-d+u)
s=e*1000000
end
${bucket_save}
end
function bJ.refund(c,a,e,y,ck)
if a.aZ or(y and d-y>=c.aH)then
return 0
end
local cP=math.max(0,d-ck)*c.refill_per_second
local F=math.min(math.max(0,e-ceil(cP/1000000))*1000000,a.s)
if F>0 then
local b,g,O,s=a.b,a.g,a.O,a.s-F
local e,af,f,U,am=c.c,c.limit_text,c.refill_per_second
local ac,A,X
${bucket_prepare}
${bucket_save}
end
return ceil(F/1000000)
end
return bJ
end
${concurrency}
local Z=1
local function be()
Z=Z+1
return tonumber(ARGV[Z])
end
local function cO()
local cK,cd,bP={cI,cH,cJ,cG,cp},{},{}
for q=1,be()do
local G,e,ah,ae=be(),be(),be(),be()
cd[G]=cd[G]or cK[G]()
bP[q]={
G=G,
bc=cd[G],
c=e,
limit_text=ARGV[Z-2],
window_us=ah,
refill_per_second=ah,
buckets=ae,
}
end
return bP
end`

const new_life = `local bt,bD,cU,cD=1,2,3,5
local function cQ(b)
return T(redis.call('HMGET',b,'reset')[1])or 0
end
local function dh(c,b,y)
return c.G~=bt and c.G~=cD and y and y<=cQ(b)
end
local function df(c)
if c.G==bD then
return'start','0','current','0','previous','0'
elseif c.G==cU then
return'start','0','counts','0'
end
return'tokens',c.limit_text,'lastRefill','0','capacity',c.limit_text
end
local function cr(c,b,a)
if c.G==cD then
return c.bc.cr(c,a)
end
local cE=math.max(0,a.g-d)
if c.G~=bt then
local de=math.max(a.g,cQ(b))
redis.call('DEL',b)
redis.call('HSET',b,'reset',S(de),df(c))
aG(b,cE+(c.aH or 2*c.window_us))
return
end
redis.call('DEL',b)
if not a.ao and a.v>a.g-c.window_us then
redis.call('ZADD',b,S(a.g),string.format('%013d',0))
aG(b,cE+c.window_us)
end
end`

export const scripts = {
  changes: {
    sha: '06df356b8dc79021deff354724027ad36bc4cce9',
    functionName: 'headgate_526f7b93_changes',
    text: `${timed}
if ARGV[2]~=''then
redis.call('LPUSH',KEYS[1],string.format('%.0f ',math.floor(d/1000))..ARGV[2])
redis.call('LTRIM',KEYS[1],0,tonumber(ARGV[3])-1)
aG(KEYS[1],tonumber(ARGV[4]))
end
return redis.call('LRANGE',KEYS[1],0,-1)`,
  },
  control: {
    sha: 'e858df19c0246e06e5f50711f16232be75bcd5fa',
    functionName: 'headgate_526f7b93_control',
    text: `for bO=1,#ARGV,2 do
redis.call('HSET',KEYS[1],ARGV[bO],ARGV[bO+1])
end
local h={'enabled','multiplier'}
local dn=redis.call('HMGET',KEYS[1],h[1],h[2])
local al={}
for bO,dp in ipairs(h)do
if dn[bO]then
al[#al+1]=dp
al[#al+1]=dn[bO]
end
end
return al`,
  },
  decide: {
    sha: '1d272ce9030a001a16ecc996c981e013be1f7611',
    functionName: 'headgate_526f7b93_decide',
    text: `local cV=true
${questions}`,
  },
  decide_bucket: {
    sha: '34ebe27c07bb6d84da5b1c5a005879c68c4df6a1',
    functionName: 'headgate_526f7b93_decide_bucket',
    text: `${fields}
local af,bh=ARGV[1],ARGV[4]
local e,f,l=af+0,ARGV[2]+0,(ARGV[3]or 1)+0
${clock_read}
local al={d}
local I=true
local g,j,C,n,aQ,Y,A
${bucket_locals}
${bucket_prepare}
for q=1,#KEYS do
local b=KEYS[q]
j=nil
${bucket_load}
if not j then
${bucket_wait}
n=nil
if C==0 then
${bucket_charge}
if g==d then
${bucket_left}
end
end
if n then
al[q+1]=n
else
${bucket_tell}
al[q+1]={C==aV and-1 or C,aQ,Y,C==0 and g or-1}
end
else
al[q+1]={j}
end
end
return al`,
  },
  decide_counter: {
    sha: '8548af82219cb8328d65a80ef9171e27ba7f60e9',
    functionName: 'headgate_526f7b93_decide_counter',
    text: `${fields}
local af,bh=ARGV[1],ARGV[4]
local e,f,l=af+0,ARGV[2]+0,(ARGV[3]or 1)+0
${clock_read}
local al={d}
local I=true
local g,j,C,n,aQ,Y,A
${counter_locals}
${counter_prepare}
for q=1,#KEYS do
local b=KEYS[q]
j=nil
${counter_load}
if not j then
${counter_wait}
n=nil
if C==0 then
${counter_charge}
if g==d then
${counter_left}
end
end
if n then
al[q+1]=n
else
${counter_tell}
al[q+1]={C==aV and-1 or C,aQ,Y,C==0 and g or-1}
end
else
al[q+1]={j}
end
end
return al`,
  },
  decide_log: {
    sha: '9c26c4dc3ba84d9de93fb47c818458f09149eee6',
    functionName: 'headgate_526f7b93_decide_log',
    text: `${fields}
local af,bh=ARGV[1],ARGV[4]
local e,f,l=af+0,ARGV[2]+0,(ARGV[3]or 1)+0
${clock_read}
local al={d}
local I=true
local g,j,C,n,aQ,Y,A
${log_locals}
${log_prepare}
for q=1,#KEYS do
local b=KEYS[q]
j=nil
${log_load}
if not j then
${log_wait}
n=nil
if C==0 then
${log_charge}
if g==d then
${log_left}
end
end
if n then
al[q+1]=n
else
${log_tell}
al[q+1]={C==aV and-1 or C,aQ,Y,C==0 and g or-1}
end
else
al[q+1]={j}
end
end
return al`,
  },
  heartbeat: {
    sha: '418308628906d800229da58ffa06e4ae47139acb',
    functionName: 'headgate_526f7b93_heartbeat',
    text: `${timed}
local aH=tonumber(ARGV[3])
local dk=tonumber(ARGV[4])
local dl=ARGV[5]
local aO=redis.call('ZSCORE',KEYS[1],ARGV[2])
redis.call('ZADD',KEYS[1],d,ARGV[2])
redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',d-dk)
redis.call('ZREMRANGEBYSCORE',KEYS[1],d+aH,'+inf')
aG(KEYS[1],dk)
local function cC(ay,aN)
if dl==''then return redis.call('ZCOUNT',KEYS[1],ay,aN)end
local db=0
for bI,aU in ipairs(redis.call('ZRANGEBYSCORE',KEYS[1],ay,aN))do
local dm=string.find(aU,'/',1,true)
if not dm or string.sub(aU,1,dm-1)==dl then db=db+1 end
end
return db
end
local K=cC(d-aH,'+inf')
local dr=cC('-inf','('..string.format('%.0f',d-aH))
return{K,string.format('%.0f',d),aO or'',K+dr,redis.call('ZCARD',KEYS[1])}`,
  },
  overrides: {
    sha: 'cb04039f99686d86f03fa66a44ec92bdf204edc0',
    functionName: 'headgate_526f7b93_overrides',
    text: `${timed}
local dj=d
local d=math.floor(dj/1000)
local b=KEYS[1]
local cX='#revision'
local cW='#next-end'
if ARGV[3]=='read'and ARGV[2]~=''then
local dc=redis.call('HMGET',b,cX,cW)
if dc[1]==ARGV[2]and d<(tonumber(dc[2]or'0')or 0)then
return{d,dc[1],0,'same'}
end
end
local ab=redis.call('HGETALL',b)
local aP={}
local cC=0
local cv=''
local cT=0
local cY=false
local cZ=math.huge
local aw=d
local function di(cs,bC,as)
aP[#aP+1]=cs
aP[#aP+1]=bC
cZ=math.min(cZ,as)
aw=math.max(aw,as)
end
for bO=1,#ab,2 do
local cs=ab[bO]
if cs==cX then
cv=ab[bO+1]
elseif cs~=cW then
local as=tonumber(string.match(ab[bO+1],'^%d+ (%d+) ')or'0')
if as>8.64e15 then as=0 end
if cs==ARGV[4]and as>d then cT=1 end
local dt=cs==ARGV[4]and ARGV[3]=='remove'
if as<=d or dt then
redis.call('HDEL',b,cs)
cY=true
elseif not(cs==ARGV[4]and ARGV[3]=='put')then
di(cs,ab[bO+1],as)
cC=cC+1
end
end
end
local dg=ARGV[3]=='put'and cC>=tonumber(ARGV[7])
if ARGV[3]=='put'and not dg then
local as=d+tonumber(ARGV[6])
local bC=string.format('%.0f %.0f ',d,as)..ARGV[5]
redis.call('HSET',b,ARGV[4],bC)
di(ARGV[4],bC,as)
cY=true
end
if cY then
cv=string.format('%.0f',math.max(dj,(tonumber(cv)or 0)+1))
if#aP>0 then
redis.call('HSET',b,cX,cv,cW,string.format('%.0f',cZ))
aG(b,(aw-d)*1000)
else
redis.call('DEL',b)
cv=''
end
end
if dg then
return{d,'full',cT}
end
if ARGV[2]~=''and cv==ARGV[2]then
return{d,cv,cT,'same'}
end
local al={d,cv,cT}
for bO=1,#aP do al[#al+1]=aP[bO]end
return al`,
  },
  peek: {
    sha: '588c34315a422bef5c51fce50dc2725466a75969',
    functionName: 'headgate_526f7b93_peek',
    text: `local cV=false
${questions}`,
  },
  refund: {
    sha: '35f5c83d473ecb9a3a1e837a3b9616a8d6341d9f',
    functionName: 'headgate_526f7b93_refund',
    text: `${timed}
${checks}
${new_life}
local bP=cO()
local al={}
for q,b in ipairs(KEYS)do
local c,e,y,ck=bP[be()],be(),be(),be()
if y==-1 then
y=nil
end
if ck==-1 then
ck=d
end
local a=c.bc.load(b,c)
if not a then
al[q]=-2
elseif e<0 then
c.bc.charge_beyond(c,a,-e)
al[q]=0
elseif dh(c,b,y)then
al[q]=0
else
al[q]=c.bc.refund(c,a,e,y,ck)
end
end
return al`,
  },
  renew: {
    sha: '19afb473c6822dda6d24012dbef33eb13cc8ba07',
    functionName: 'headgate_526f7b93_renew',
    text: `${timed}
${checks}
local bP=cO()
local al={}
for q,b in ipairs(KEYS)do
local c,e,o=bP[be()],be(),be()
local a=c.bc.load(b,c)
al[q]=a and c.bc.renew(c,a,e,o)or-2
end
return al`,
  },
  reset: {
    sha: '415266d67f93dea99a9ef3397df60c27f27750a2',
    functionName: 'headgate_526f7b93_reset',
    text: `${timed}
${checks}
${new_life}
local bP=cO()
local da=0
for bI,b in ipairs(KEYS)do
local c=bP[be()]
local a=c.bc.load(b,c)
if a and redis.call('EXISTS',b)==1 then
cr(c,b,a)
da=da+1
end
end
return da`,
  },
  statistics: {
    sha: 'd54a865ff09babd5e64fc822e8519b6c955f3792',
    functionName: 'headgate_526f7b93_statistics',
    text: `${timed}
local aH=tonumber(ARGV[4])
local cS=ARGV[2]
local av=redis.call('ZRANGEBYSCORE',KEYS[1],'-inf',d-aH)
for bI,aU in ipairs(av)do redis.call('HDEL',KEYS[2],aU)end
if#av>0 then redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',d-aH)end
if cS==''then
return{S(d),redis.call('HGETALL',KEYS[2]),redis.call('ZRANGE',KEYS[3],0,-1)}
end
local dq=redis.call('ZSCORE',KEYS[1],cS)
if dq or redis.call('ZCARD',KEYS[1])<tonumber(ARGV[6])then
redis.call('ZADD',KEYS[1],d,cS)
redis.call('HSET',KEYS[2],cS,ARGV[3])
aG(KEYS[1],aH)
aG(KEYS[2],aH)
end
local ds=tonumber(ARGV[7])
for bO=8,#ARGV do redis.call('ZADD',KEYS[3],d,ARGV[bO])end
if#ARGV>=8 then
redis.call('ZREMRANGEBYSCORE',KEYS[3],'-inf',d-tonumber(ARGV[5]))
local bZ=redis.call('ZCARD',KEYS[3])-ds
if bZ>0 then
local bd=redis.call('ZRANGE',KEYS[3],bZ-1,bZ-1,'WITHSCORES')
redis.call('ZREMRANGEBYSCORE',KEYS[3],'-inf',bd[2])
end
aG(KEYS[3],tonumber(ARGV[5]))
end
return{S(d)}`,
  },
} as const satisfies Record<string, Script>
