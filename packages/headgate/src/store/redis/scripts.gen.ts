// Built by scripts/build-lua.mjs from lua/*.lua. Do not edit: change the Lua and run `npm run lua`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

export const functionLibrary = 'headgate_edab3513'

const names = `local call,aI,format,find=redis.call,redis.pcall,string.format,string.find
local ceil,floor=math.ceil,math.floor`

const clock_read = `local d,E=bg,0
if d and d~=''then
d,E=d+0,600000
else
local aF=call('TIME')
d=aF[1]*1000000+aF[2]
end`

const clock_text = `local function R(ah)
return format('%d',ah)
end
local function az(b,aH)
call('PEXPIRE',b,R(ceil(aH/1000)+E))
end`

const timed = `${names}
local bg=ARGV[1]
${clock_read}
${clock_text}`

const fields = `${names}
local aW,aK=math.huge,9007199254740991
local F='HEADGATE_BAD_STATE the key holds something Headgate did not write'
local function T(J)
return J and#J<=16 and find(J,'^%d+$')and J+0 or nil
end`

const counter_locals = `local an,aR,bi,bn
local w,p,k,au,S`

const parts_locals = `local t,ai,aD,aX,k,H,V,K,N,i,m`

const bucket_locals = `local s,U,am,O,ba,ac,X`

const log_locals = `local r,i,L,W,ag,v,ao,ay,aL`

const check_open = `b,c,l=KEYS[cn+ar],ce[ar],ca[ar]
local ah=4*c-1
A,e,f=bs[ah],bs[ah+1],bs[ah+2]`

const counter_prepare = `an=d-d%f
aR=format('%d',an)`

const check_counter = `an,aR,bi=bA[c],bz[c],bF[c]
bn=aT[c]
if not an then
${counter_prepare}
bA[c],bz[c]=an,aR
end`

const hash_empty = `if h.err then
j=h.err
elseif I or call('EXISTS',b)==1 then
j=F
end`

const fraction_floor = `local M=aM*aY
if M<=aK then
M=floor(M/aq)
else
local bb,aE,Q=0,aM,268435456
M=0
while Q>=1 do
local aZ=floor(aE/Q)
aE=aE-aZ*Q
local bc=bb*128+aZ*aY
local t=floor(bc/aq)
M=M*128+t
bb=bc-t*aq
Q=Q/128
end
end`

const counter_load = `local h,C
if not I or call('EXISTS',b)==1 then
h=aI('HMGET',b,'start','current','previous')
C=h[1]
end
g,k,w,p,au=d,an,0,0,true
if C==aR then
w=h[2]and#h[2]<=16 and find(h[2],'^%d+$')and h[2]+0
p,au=h[3]=='0'and 0 or T(h[3]),false
if not(w and p)then
j=F
end
elseif C and C==(bi or format('%d',an-f))then
bi,p=C,h[2]and#h[2]<=16 and find(h[2],'^%d+$')and h[2]+0
if not(p and(h[3]=='0'or T(h[3])))then
j=F
end
elseif C then
local x,m,aO=T(C),T(h[2]),T(h[3])
if not(x and m and aO)then
j=F
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
I=not C
if not j then
S=0
if p>0 then
local u=g-k
S=p*(f-u)
if S<=aK then
S=ceil(S/f)
else
local aM,aY,aq=p,u,f
${fraction_floor}
S=p-M
end
end
end`

const counter_wait = `local cj=e-w-l
if S<=cj then
D=0
elseif l>e then
D=aW
else
local aM,aY,aq=cj,f,p
D=k-d
if cj<0 then
aM,aq,D=e-l,w,D+f
end
if aq>aM then
${fraction_floor}
D=D+f-M
end
end`

const clock_now_text = `B=B or format('%d',d)`

const bucket_prepare = `ac=e*1000000
${clock_now_text}
X=format('%d',2000*ceil(e/f)+E)`

const check_bucket = `ac,X,af=e*1000000,aT[c],ARGV[ah+1]
if not X then
${bucket_prepare}
aT[c]=X
end`

const bucket_load = `local h,z,aG
O=nil
if not I or call('EXISTS',b)==1 then
h=aI('HMGET',b,'tokens','lastRefill','capacity')
z,aG,O=h[1],h[2],h[3]
end
s,U,am,g,ba=0,0,0,d,false
if z then
local bB=#z<=17 and find(z,'^%d+%.?%d*$')and z+0
local at=aG and#aG<=16 and find(aG,'^%d+$')and aG+0
local bw=O==af and e or T(O)
if not(bB and at and bw)then
j=F
elseif at<=d or at-d<=(e-1)*1000000/f then
am,g=at,at>d and at or d
local bC=bB*1000000+0.5
U=bw*1000000-(bC-bC%1)
if U>ac then
U,ba=ac,true
end
local bx=(g-am)*f
s=U-(bx-bx%1)
if s<0 then
s=0
end
end
elseif h then
${hash_empty}
end
I=not z`

const bucket_refill = `local u=ceil(aB/f)
while floor(u*f)<aB do
u=u+1
end
while u>0 and floor((u-1)*f)>=aB do
u=u-1
end`

const bucket_wait = `local ch=(e-l)*1000000
if s<=ch then
D=0
elseif ch<0 then
D=aW
else
local aB=U-ch
${bucket_refill}
D=am+u-d
end`

const log_prepare = `${clock_now_text}
ay=format('%d',d-f)
aL=format('%d',ceil(f/1000)+E)`

const check_log = `ay,aL=bF[c],aT[c]
if not ay then
${log_prepare}
bF[c],aT[c]=ay,aL
end`

const log_load = `local m=aI('ZRANGE',b,'-1','-1','WITHSCORES')
r,i,L,W,ag,v,ao,g=0,0,0,nil,false,nil,false,d
if m.err then
j=m.err
elseif m[1]then
r,v=#m[1]==13 and find(m[1],'^%d+$')and m[1]+0,m[2]+0
if not(r and v>=0 and v<=aK and v%1==0)then
j=F
elseif v>d+f then
r,ao=0,true
else
if v>d then
g=v
end
if v<=g-f then
L,W,ag=r,v,true
else
local bo=g==d and ay or format('%d',g-f)
local aw=call('ZREVRANGEBYSCORE',b,bo,'-inf','WITHSCORES','LIMIT','0','2')
if aw[1]then
L,W,ag=#aw[1]==13 and T(aw[1]),aw[2]+0,aw[3]
if not L then
j=F
end
end
end
i=r-(L or 0)
end
end`

const log_wait = `if l>e then
D=aW
elseif i+l<=e then
D=0
else
local bj=r+l-e
local aU=call('ZCOUNT',b,'-inf',format('%d',g-f))
local bD=call('ZRANGE',b,aU,aU,'WITHSCORES')
local bk=T(bD[1])
if bk and bk<bj then
local cc=call('ZCARD',b)-1
aU=aU+1
while bk and aU<cc do
local bT=floor((aU+cc)/2)
bk=T(call('ZRANGE',b,bT,bT)[1])
if bk and bk>=bj then
cc=bT
else
aU=bT+1
end
end
bD=call('ZRANGE',b,aU,aU,'WITHSCORES')
end
if bk then
D=tonumber(bD[2])+f-d
else
j=F
end
end`

const parts_prepare = `t=ceil(f/ae)
ai=d-d%t
aD=format('%d',ai)`

const check_parts = `t,ai,aD,aX=cp[c],bA[c],bz[c],aT[c]
ae=bs[ah+3]
if not t then
${parts_prepare}
cp[c],bA[c],bz[c]=t,ai,aD
end`

const parts_load = `local h,C
if not I or call('EXISTS',b)==1 then
h=aI('HMGET',b,'start','counts')
C=h[1]
end
g,k,H,V,K,N,i,m=d,ai,nil,nil,0,ae+1,0,0
if C then
local x=C==aD and ai or T(C)
V=h[2]
local br=x and V and find(V,'^%d[%d,]*$')
if br then
br,H=pcall(cjson.decode,'['..V..']')
end
if not br then
j=F
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
j=F
end
end
end
elseif h then
${hash_empty}
end
I=not C`

const concurrency = `local function cq()
local aj={}
local bJ,bp=1000000,2
local function ap(o,aJ)
return aJ==0 and string.format('%016d',o)or string.format('%016d.%d',o,aJ)
end
local function bt(aV)
return tonumber(string.match(aV,'^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$')
or string.match(aV,'^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)%.%d+$'))
end
function aj.load(b,c)
local ak=redis.pcall('ZRANGE',b,0,0,'WITHSCORES')
if ak.err then
return nil,ak.err
end
local a={b=b,i=0,Y=0,g=d,av='('..R(d)}
a.ax=d+bp*c.window_us
a.aN=R(a.ax)
if not ak[1]then
return a
end
local bf=string.match(ak[1],'^reset:(%d+)$')
a.Y=bf and tonumber(bf)or 0
if not(bf or bt(ak[1]))then
return nil,F
end
a.i=redis.call('ZCOUNT',b,a.av,a.aN)
a.dead=redis.call('ZCARD',b)-a.i>(bf and 1 or 0)
return a
end
function aj.D(c,a,l)
if l>c.c then
return aW
end
local bj=a.i+l-c.c
if bj<=0 then
return 0
end
local Q=redis.call('ZRANGEBYSCORE',a.b,a.av,a.aN,'WITHSCORES','LIMIT',bj-1,1)
return Q[2]and math.min(bJ,tonumber(Q[2])-d)or bJ
end
function aj.tell(c,a)
if a.i==0 then
return c.c,0
end
local bh=redis.call('ZREVRANGEBYSCORE',a.b,a.aN,a.av,'WITHSCORES','LIMIT',0,1)
return math.max(0,c.c-a.i),tonumber(bh[2])-d
end
local function bN(a)
if a.dead then
redis.call('ZREMRANGEBYSCORE',a.b,0,R(d))
redis.call('ZREMRANGEBYSCORE',a.b,'('..a.aN,'+inf')
a.dead=false
end
end
local function bP(c,a,o,e)
local as=R(d+c.window_us)
for aJ=0,e-1 do
redis.call('ZADD',a.b,as,ap(o,aJ))
end
az(a.b,bp*c.window_us)
end
function aj.charge(c,a,l)
bN(a)
local o=math.max(d,a.Y+1)
while redis.call('ZSCORE',a.b,ap(o,0))do
o=o+1
end
bP(c,a,o,l)
a.i=a.i+l
return o
end
local function bO(a,o,e)
local P=0
while redis.call('ZSCORE',a.b,ap(o,P))do
P=P+1
end
local G=math.min(e,P)
for aJ=P-G,P-1 do
redis.call('ZREM',a.b,ap(o,aJ))
end
return G
end
function aj.charge_beyond()end
local function cm(a,o)
local as=tonumber(redis.call('ZSCORE',a.b,ap(o,0))or nil)
return as and as>d and as<=a.ax
end
function aj.refund(bK,a,e,o)
if o then
return cm(a,o)and bO(a,o,e)or 0
end
local n=math.min(e,a.i)
local G=n
while n>0 do
local ak=redis.call('ZRANGEBYSCORE',a.b,a.av,a.aN,'LIMIT',0,1)
n=n-bO(a,bt(ak[1]),n)
end
return G
end
function aj.renew(c,a,e,o)
bN(a)
local P=0
while redis.call('ZSCORE',a.b,ap(o,P))do
P=P+1
end
if P==0 and a.i+e>c.c then
return 0
end
bP(c,a,o,P>0 and P or e)
return 1
end
function aj.bW(c,a)
local ax=a.Y
for bK,aV in ipairs(redis.call('ZRANGE',a.b,0,-1))do
ax=math.max(ax,bt(aV)or 0)
end
redis.call('DEL',a.b)
redis.call('ZADD',a.b,-1,'reset:'..R(ax))
az(a.b,bp*c.window_us)
end
return aj
end`

const counter_charge = `w=w+l
if au then
bn=bn or format('%d',ceil(2*f/1000)+E)
local cx,ad=aR,bn
if k~=an then
cx=format('%d',k)
ad=format('%d',ceil(((k>d and k-d or 0)+2*f)/1000)+E)
end
local cO=p==0 and'0'or format('%d',p)
call('HSET',b,'start',cx,'current',format('%d',w),'previous',cO)
call('PEXPIRE',b,ad)
else
call('HSET',b,'current',format('%d',w))
end`

const counter_left = `n=e-w-S`

const bucket_save = `U,am=s,g
local aA=ac-s
local aC=aA%1000000
local z,aa,ad=nil,B,X
if aC==0 then
z=format('%d',aA/1000000)
else
z=format('%d.%06d',(aA-aC)/1000000,aC)
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
local cb=(tonumber(ab[q])or L)-L
call('ZADD',b,ab[q+1],format('%013d',cb))
end
r,L,W,ag=i,0,nil,false
end
r,i,v=r+l,i+l,g
local aa,ad=B,aL
if g~=d then
aa=format('%d',g)
ad=format('%d',ceil((g-d+f)/1000)+E)
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
call('HSET',b,'start',k==ai and aD or format('%d',k),'counts',J)
if N>0 then
aX=aX or format('%d',ceil(2*f/1000)+E)
call('PEXPIRE',b,k<=d and aX
or format('%d',ceil((k-d+2*f)/1000)+E))
end`

const counter_tell = `aQ=e-w-S
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
local aB=U
${bucket_refill}
aQ,Y=e-ceil(s/1000000),am+u-d
end`

const log_tell = `aQ=i<e and e-i or 0
Y=i==0 and 0 or v+f-d`

const questions = `local bu,bE,bY,bX=1,2,3,4
${fields}
local bg=ARGV[1]
${clock_read}
local b,c,l,A,e,af,f,ae
local g,j,D,n,aQ,Y,B
${counter_locals}
${parts_locals}
${bucket_locals}
${log_locals}
local bA,bz,aT,bF,cp,bV={},{},{},{},{},{}
local aP,I={},nil
local bU,bl,bH,cD,bm,bI
local cS={}
local bs,Z={0,0},3+4*ARGV[2]
for q=3,Z-1 do
bs[q]=ARGV[q]+0
end
local ce,ca,co,bv,cA,bq={},{},{},0,0,0
local al,be,cn={d},1,0
while ARGV[Z]do
local cf=ARGV[Z]+0
local cC=cf<=0
Z=Z+1
if cC then
ce[1],ca[1],co[1]=-cf,1,1
if cf==0 then
ce[1],ca[1]=ARGV[Z]+0,ARGV[Z+1]+0
Z=Z+2
end
cf,bv,cA,bq=1,1,1,1
else
bv,bq=ARGV[Z]+0,0
for bG=1,bv+1 do
local cN=ARGV[Z+1]+0
Z=Z+1
for df=1,cN do
bq=bq+1
ce[bq],ca[bq]=ARGV[Z+1]+0,ARGV[Z+2]+0
Z=Z+2
if bG>bv then
co[bv+df]=bq
end
end
if bG>bv then
cA=bv+cN
else
co[bG]=bq
end
end
Z=Z+1
end
for bK=1,cf do
local cs,bZ,bh=be+1,-1,0
if not cC then
be=cs
end
for bG=1,cA do
local ak,ck,cB=bh+1,true,bG>bv
bh=co[bG]
if cB or bZ<0 then
j=nil
for ar=ak,bh do
${check_open}
if A==bE then
${check_counter}
I=bV[c]
${counter_load}
bV[c]=I
if not j then
${counter_wait}
end
elseif A==bX then
${check_bucket}
I=bV[c]
${bucket_load}
bV[c]=I
if not j then
${bucket_wait}
end
elseif A==bu then
${check_log}
${log_load}
if not j then
${log_wait}
end
elseif A==bY then
${check_parts}
I=bV[c]
${parts_load}
bV[c]=I
if not j then
if l>e then
D=aW
elseif i+l<=e then
D=0
else
local cz,q=i+l-e,K
while q>1 and cz>H[q]do
cz,q=cz-H[q],q-1
end
D=k+(ae+2-q-N)*t-d
end
end
else
if not bU then
${clock_text}
${concurrency}
local cr={[5]=cq}
bU,bl,cD=cr,{},{}
end
bH=bl[A]or bU[A]()
bl[A]=bH
bm=cD[c]
if not bm then
bm={c=e,window_us=f}
cD[c]=bm
end
bI,j=bH.load(b,bm)
if bI then
D=bH.D(bm,bI,l)
end
end
if j then
break
end
ck=ck and D==0
if ak<bh then
if A==bE then
aP[ar]={w,p,k,au,S,g}
elseif A==bX then
aP[ar]={s,U,am,O,g}
elseif A==bu then
aP[ar]={r,i,L,W or false,ag,v or false,ao,g}
elseif A==bY then
aP[ar]={H or false,V or false,K,N,i,m,k,g}
else
aP[ar]={bm,bI}
end
cS[ar]=D
end
end
if j and not cB then
for q=be,cs,-1 do
al[q]=nil
end
bZ,be={j},cs
al[be]=bZ
break
elseif j then
be=be+1
al[be]={0,0,0,-1}
else
for ar=ak,bh do
if ak<bh then
${check_open}
if A==bE then
${check_counter}
local a=aP[ar]
w,p,k,au,S,g=a[1],a[2],a[3],a[4],a[5],a[6]
elseif A==bX then
${check_bucket}
local a=aP[ar]
s,U,am,O,g=a[1],a[2],a[3],a[4],a[5]
elseif A==bu then
${check_log}
local a=aP[ar]
r,i,L,W,ag=a[1],a[2],a[3],a[4],a[5]
v,ao,g=a[6],a[7],a[8]
elseif A==bY then
${check_parts}
local a=aP[ar]
H,V,K,N,i,m=a[1],a[2],a[3],a[4],a[5],a[6]
k,g=a[7],a[8]
else
bH,bm,bI=bl[A],aP[ar][1],aP[ar][2]
end
D=cS[ar]
end
be=be+1
local y=-1
if ck and cX and l>0 then
n=nil
if A==bE then
${counter_charge}
${counter_left}
aT[c],bF[c]=bn,bi
elseif A==bX then
${bucket_charge}
${bucket_left}
elseif A==bu then
${log_charge}
${log_left}
elseif A==bY then
i,m=i+l,m+l
${parts_save}
${log_left}
aT[c]=aX
else
g=bH.charge(bm,bI,l)
end
y=g
end
if y==d and n then
al[be]=n
else
if A==bE then
${counter_tell}
elseif A==bX then
${bucket_tell}
elseif A==bu then
${log_tell}
elseif A==bY then
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
aQ,Y=bH.tell(bm,bI)
end
al[be]={D==aW and-1 or D,aQ,Y,y}
end
end
if ck and not cB then
bZ=bG-1
end
end
end
end
cn=cn+bq
if not cC then
al[cs]=bZ
end
end
end
return al`

const checks = `local aW,aK=math.huge,9007199254740991
local F='HEADGATE_BAD_STATE the key holds something Headgate did not write'
local function T(J)
return J and#J<=16 and find(J,'^%d+$')and J+0 or nil
end
local function ci(c,i)
return math.max(0,math.min(2*c.c,4294967295)-i)
end
local function cK()
local bS={}
function bS.load(b,c)
local f,g,j,B=c.window_us,nil,nil,nil
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
function bS.charge_beyond(c,a,e)
local l,b,f,g=math.min(e,ci(c,a.i)),a.b,c.window_us,a.g
local r,i,L,W=a.r,a.i,a.L,a.W
local ag,v,ao=a.ag,a.v,a.ao
local B,ay,aL
if l>0 then
${log_prepare}
${log_charge}
end
end
function bS.refund(c,a,e,y)
if a.i==0 then
return 0
end
local bo=a.g-c.window_us
if y and y<=bo then
return 0
end
local av=y and R(y)or'('..R(bo)
local ab=call('ZRANGEBYSCORE',a.b,av,'+inf','WITHSCORES')
if#ab==0 or(y and tonumber(ab[2])~=y)then
return 0
end
local cg=call('ZRANK',a.b,ab[1])
local aO=cg>0 and tonumber(call('ZRANGE',a.b,cg-1,cg-1)[1])or 0
if y and tonumber(ab[1])==aO then
return 0
end
local n,cd,cw=e,aO,aO
call('ZREMRANGEBYSCORE',a.b,av,'+inf')
if a.W then
call('ZREMRANGEBYSCORE',a.b,'-inf',a.W)
call('ZADD',a.b,0,ap(a.L))
end
for q=1,#ab,2 do
local r,cy=tonumber(ab[q]),tonumber(ab[q+1])
local l=r-cw
local G=0
if not y or cy==y then
G=math.min(n,l)
end
cw=r
n=n-G
if G<l or l==0 then
cd=cd+l-G
call('ZADD',a.b,cy,ap(cd))
end
end
az(a.b,math.max(0,a.v-d)+c.window_us)
return e-n
end
return bS
end
local function cJ()
local bM={}
function bM.load(b,c)
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
S=S,
g=g,
k=k,
au=au,
}
end
local function by(c,a)
local k,w,p=R(a.k),R(a.w),R(a.p)
call('HSET',a.b,'start',k,'current',w,'previous',p)
if a.au then
az(a.b,math.max(0,a.k-d)+2*c.window_us)
end
end
function bM.charge_beyond(c,a,e)
local l=math.min(e,ci(c,a.w+a.S))
if l>0 then
a.w=a.w+l
by(c,a)
end
end
function bM.refund(c,a,e,y)
local cv=y and y-y%c.window_us
local n=e
if not y or cv==a.k-c.window_us then
local G=math.min(n,a.p)
a.p,n=a.p-G,n-G
end
if not y or cv==a.k then
local G=math.min(n,a.w)
a.w,n=a.w-G,n-G
end
if n<e then
by(c,a)
end
return e-n
end
return bM
end
local function cL()
local aS={}
function aS.load(b,c)
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
local function by(c,a)
local f,ae,b,k,N=c.window_us,c.buckets,a.b,a.k,a.N
local H,V,K,m=a.H,a.V,a.K,a.m
local t,ai,aD,aX
${parts_prepare}
${parts_save}
end
function aS.charge_beyond(c,a,e)
local l=math.min(e,ci(c,a.i))
if l>0 then
a.m=a.m+l
by(c,a)
end
end
function aS.refund(c,a,e,y)
local cG=y and(a.k-(y-y%a.t))/a.t
local n=e
for q=a.K,1,-1 do
if not y or cG==q-1+a.N then
local G=math.min(n,a.H[q])
a.H[q]=a.H[q]-G
n=n-G
end
end
if n<e then
a.V=table.concat(a.H,',',1,a.K)
a.m=a.N==0 and a.H[1]or 0
by(c,a)
end
return e-n
end
return aS
end
local function cI()
local bL={}
function bL.load(b,c)
local e,af,f,g,j=c.c,c.limit_text,c.refill_per_second,nil,nil
local B,I
${bucket_locals}
${bucket_prepare}
${bucket_load}
if j then
return nil,j
end
c.aH=2000000*ceil(e/f)
return{b=b,s=s,g=g,O=O,ba=ba}
end
function bL.charge_beyond(c,a,cM)
local b,g,O,s=a.b,a.g,a.O,a.s+cM*1000000
local e,af,f,U,am=c.c,c.limit_text,c.refill_per_second
local ac,B,X
if e==0 then
return
end
${bucket_prepare}
if s>e*1000000 then
local aB=s-e*1000000
${bucket_refill}
g=d+math.min(floor((e-1)*1000000/f),g-d+u)
s=e*1000000
end
${bucket_save}
end
function bL.refund(c,a,e,y,cl)
if a.ba or(y and d-y>=c.aH)then
return 0
end
local cQ=math.max(0,d-cl)*c.refill_per_second
local G=math.min(math.max(0,e-ceil(cQ/1000000))*1000000,a.s)
if G>0 then
local b,g,O,s=a.b,a.g,a.O,a.s-G
local e,af,f,U,am=c.c,c.limit_text,c.refill_per_second
local ac,B,X
${bucket_prepare}
${bucket_save}
end
return ceil(G/1000000)
end
return bL
end
${concurrency}
local cr={[5]=cq}
local Z=1
local function bd()
Z=Z+1
return tonumber(ARGV[Z])
end
local function cP()
local bU,bl,bR={cK,cJ,cL,cI},{},{}
for q=1,bd()do
local A,e,ah,ae=bd(),bd(),bd(),bd()
bl[A]=bl[A]or(bU[A]or cr[A])()
bR[q]={
A=A,
aS=bl[A],
c=e,
limit_text=ARGV[Z-2],
window_us=ah,
refill_per_second=ah,
buckets=ae,
}
end
return bR
end`

const new_life = `local bu,bE,cW=1,2,3
local function cR(b)
return T(redis.call('HMGET',b,'reset')[1])or 0
end
local function dk(c,b,y)
local dc=c.A==bu or c.aS.bW
return not dc and y and y<=cR(b)
end
local function dh(c)
if c.A==bE then
return'start','0','current','0','previous','0'
elseif c.A==cW then
return'start','0','counts','0'
end
return'tokens',c.limit_text,'lastRefill','0','capacity',c.limit_text
end
local function bW(c,b,a)
if c.aS.bW then
return c.aS.bW(c,a)
end
local cF=math.max(0,a.g-d)
if c.A~=bu then
local dg=math.max(a.g,cR(b))
redis.call('DEL',b)
redis.call('HSET',b,'reset',R(dg),dh(c))
az(b,cF+(c.aH or 2*c.window_us))
return
end
redis.call('DEL',b)
if not a.ao and a.v>a.g-c.window_us then
redis.call('ZADD',b,R(a.g),string.format('%013d',0))
az(b,cF+c.window_us)
end
end`

export const scripts = {
  changes: {
    sha: '98a834b1d25a87e1950fc360d68ef21577f32b17',
    functionName: 'headgate_edab3513_changes',
    text: `${timed}
if ARGV[2]~=''then
redis.call('LPUSH',KEYS[1],string.format('%.0f ',math.floor(d/1000))..ARGV[2])
redis.call('LTRIM',KEYS[1],0,tonumber(ARGV[3])-1)
az(KEYS[1],tonumber(ARGV[4]))
end
return redis.call('LRANGE',KEYS[1],0,-1)`,
  },
  control: {
    sha: 'bce71ac0e1ae273d6792cd90aa07de7b5cf32466',
    functionName: 'headgate_edab3513_control',
    text: `for bQ=1,#ARGV,2 do
redis.call('HSET',KEYS[1],ARGV[bQ],ARGV[bQ+1])
end
local h={'enabled','multiplier'}
local dt=redis.call('HMGET',KEYS[1],h[1],h[2])
local al={}
for bQ,du in ipairs(h)do
if dt[bQ]then
al[#al+1]=du
al[#al+1]=dt[bQ]
end
end
return al`,
  },
  decide: {
    sha: 'b96ef5abb952219dd613f92780ddfe0ab07327e5',
    functionName: 'headgate_edab3513_decide',
    text: `local cX=true
${questions}`,
  },
  decide_bucket: {
    sha: '3cdece962f3d81c564370bdd18d5b376c4458c54',
    functionName: 'headgate_edab3513_decide_bucket',
    text: `${fields}
local af,bg=ARGV[1],ARGV[4]
local e,f,l=af+0,ARGV[2]+0,(ARGV[3]or 1)+0
${clock_read}
local al={d}
local I=true
local g,j,D,n,aQ,Y,B
${bucket_locals}
${bucket_prepare}
for q=1,#KEYS do
local b=KEYS[q]
j=nil
${bucket_load}
if not j then
${bucket_wait}
n=nil
if D==0 then
${bucket_charge}
if g==d then
${bucket_left}
end
end
if n then
al[q+1]=n
else
${bucket_tell}
al[q+1]={D==aW and-1 or D,aQ,Y,D==0 and g or-1}
end
else
al[q+1]={j}
end
end
return al`,
  },
  decide_counter: {
    sha: '288979b2f1dc7da61d17f297094972112ff82932',
    functionName: 'headgate_edab3513_decide_counter',
    text: `${fields}
local af,bg=ARGV[1],ARGV[4]
local e,f,l=af+0,ARGV[2]+0,(ARGV[3]or 1)+0
${clock_read}
local al={d}
local I=true
local g,j,D,n,aQ,Y,B
${counter_locals}
${counter_prepare}
for q=1,#KEYS do
local b=KEYS[q]
j=nil
${counter_load}
if not j then
${counter_wait}
n=nil
if D==0 then
${counter_charge}
if g==d then
${counter_left}
end
end
if n then
al[q+1]=n
else
${counter_tell}
al[q+1]={D==aW and-1 or D,aQ,Y,D==0 and g or-1}
end
else
al[q+1]={j}
end
end
return al`,
  },
  decide_log: {
    sha: '7e7fda97408e5e948d440fe535997f29392d2dcb',
    functionName: 'headgate_edab3513_decide_log',
    text: `${fields}
local af,bg=ARGV[1],ARGV[4]
local e,f,l=af+0,ARGV[2]+0,(ARGV[3]or 1)+0
${clock_read}
local al={d}
local I=true
local g,j,D,n,aQ,Y,B
${log_locals}
${log_prepare}
for q=1,#KEYS do
local b=KEYS[q]
j=nil
${log_load}
if not j then
${log_wait}
n=nil
if D==0 then
${log_charge}
if g==d then
${log_left}
end
end
if n then
al[q+1]=n
else
${log_tell}
al[q+1]={D==aW and-1 or D,aQ,Y,D==0 and g or-1}
end
else
al[q+1]={j}
end
end
return al`,
  },
  heartbeat: {
    sha: 'a063564a6a00741cc279e6271dc88904f6b7a8ec',
    functionName: 'headgate_edab3513_heartbeat',
    text: `${timed}
local aH=tonumber(ARGV[3])
local dq=tonumber(ARGV[4])
local dr=ARGV[5]
local aO=redis.call('ZSCORE',KEYS[1],ARGV[2])
redis.call('ZADD',KEYS[1],d,ARGV[2])
redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',d-dq)
redis.call('ZREMRANGEBYSCORE',KEYS[1],d+aH,'+inf')
az(KEYS[1],dq)
local function cE(av,aN)
if dr==''then return redis.call('ZCOUNT',KEYS[1],av,aN)end
local de=0
for bK,aV in ipairs(redis.call('ZRANGEBYSCORE',KEYS[1],av,aN))do
local ds=string.find(aV,'/',1,true)
if not ds or string.sub(aV,1,ds-1)==dr then de=de+1 end
end
return de
end
local K=cE(d-aH,'+inf')
local dw=cE('-inf','('..string.format('%.0f',d-aH))
return{K,string.format('%.0f',d),aO or'',K+dw,redis.call('ZCARD',KEYS[1])}`,
  },
  history: {
    sha: '0e68ad4d45bc57c3259e146cf48e35579cc74feb',
    functionName: 'headgate_edab3513_history',
    text: `if ARGV[1]==''then
return redis.call('HGETALL',KEYS[1])
end
local cH=redis.call('HMGET',KEYS[1],ARGV[1])[1]or'0 0 '
local k,dy=string.match(cH,'^(%d+) (%d+) ')
local dm=tonumber(ARGV[2])-(tonumber(k)or 0)
if dm>0 or(dm==0 and tonumber(ARGV[3])>(tonumber(dy)or 0))then
redis.call('HSET',KEYS[1],ARGV[1],ARGV[2]..' '..ARGV[3]..' '..ARGV[4])
redis.call('PEXPIRE',KEYS[1],ARGV[5])
end
return{}`,
  },
  overrides: {
    sha: 'e364ce3abb83e3d8352d7e7739e5eb572b1cb523',
    functionName: 'headgate_edab3513_overrides',
    text: `${timed}
local dn=d
local d=math.floor(dn/1000)
local b=KEYS[1]
local cT='#revision'
local cY='#next-end'
if ARGV[3]=='read'and ARGV[2]~=''then
local cH=redis.call('HMGET',b,cT,cY)
if cH[1]==ARGV[2]and d<(tonumber(cH[2]or'0')or 0)then
return{d,cH[1],0,'same'}
end
end
local ab=redis.call('HGETALL',b)
local aP={}
local cE=0
local ct=''
local cV=0
local da=false
local db=math.huge
local ax=d
local function dl(cu,bD,as)
aP[#aP+1]=cu
aP[#aP+1]=bD
db=math.min(db,as)
ax=math.max(ax,as)
end
for bQ=1,#ab,2 do
local cu=ab[bQ]
if cu==cT then
ct=ab[bQ+1]
elseif cu~=cY then
local as=tonumber(string.match(ab[bQ+1],'^%d+ (%d+) ')or'0')
if as>8.64e15 then as=0 end
if cu==ARGV[4]and as>d then cV=1 end
local dx=cu==ARGV[4]and ARGV[3]=='remove'
if as<=d or dx then
redis.call('HDEL',b,cu)
da=true
elseif not(cu==ARGV[4]and ARGV[3]=='put')then
dl(cu,ab[bQ+1],as)
cE=cE+1
end
end
end
local dj=ARGV[3]=='put'and cE>=tonumber(ARGV[7])
if ARGV[3]=='put'and not dj then
local as=d+tonumber(ARGV[6])
local bD=string.format('%.0f %.0f ',d,as)..ARGV[5]
redis.call('HSET',b,ARGV[4],bD)
dl(ARGV[4],bD,as)
da=true
end
if da or ARGV[3]=='remove'then
ct=string.format('%.0f',math.max(dn,(tonumber(ct)or 0)+1))
if#aP>0 then
redis.call('HSET',b,cT,ct,cY,string.format('%.0f',db))
az(b,(ax-d)*1000)
elseif ARGV[3]=='remove'then
redis.call('DEL',b)
redis.call('HSET',b,cT,ct)
az(b,31*86400*1000000)
else
redis.call('DEL',b)
ct=''
end
end
if dj then
return{d,'full',cV}
end
if ARGV[2]~=''and ct==ARGV[2]then
return{d,ct,cV,'same'}
end
local al={d,ct,cV}
for bQ=1,#aP do al[#al+1]=aP[bQ]end
return al`,
  },
  peek: {
    sha: 'e939dfe6525e171f3dc3c151b9b234d306d8b85a',
    functionName: 'headgate_edab3513_peek',
    text: `local cX=false
${questions}`,
  },
  refund: {
    sha: 'c970fd57e36dde289e2d6ccaa4ba31421c182125',
    functionName: 'headgate_edab3513_refund',
    text: `${timed}
${checks}
${new_life}
local bR=cP()
local al={}
for q,b in ipairs(KEYS)do
local c,e,y,cl=bR[bd()],bd(),bd(),bd()
if y==-1 then
y=nil
end
if cl==-1 then
cl=d
end
local a=c.aS.load(b,c)
if not a then
al[q]=-2
elseif e<0 then
c.aS.charge_beyond(c,a,-e)
al[q]=0
elseif dk(c,b,y)then
al[q]=0
else
al[q]=c.aS.refund(c,a,e,y,cl)
end
end
return al`,
  },
  renew: {
    sha: '45e7da8029be2444d0c9a62c3b15e14159925cae',
    functionName: 'headgate_edab3513_renew',
    text: `${timed}
${checks}
local bR=cP()
local al={}
for q,b in ipairs(KEYS)do
local c,e,o=bR[bd()],bd(),bd()
local a=c.aS.load(b,c)
al[q]=a and c.aS.renew(c,a,e,o)or-2
end
return al`,
  },
  reset: {
    sha: '30b6dd236e30a31d1db66e28aef6f2edf52a15ee',
    functionName: 'headgate_edab3513_reset',
    text: `${timed}
${checks}
${new_life}
local bR=cP()
local dd=0
for bK,b in ipairs(KEYS)do
local c=bR[bd()]
local a=c.aS.load(b,c)
if a and redis.call('EXISTS',b)==1 then
bW(c,b,a)
dd=dd+1
end
end
return dd`,
  },
  statistics: {
    sha: '88102d474e60757be74c24fc3bf88ff4bdccf5c5',
    functionName: 'headgate_edab3513_statistics',
    text: `${timed}
local aH=tonumber(ARGV[4])
local cU=ARGV[2]
local dp=R(math.max(0,math.floor((d-tonumber(ARGV[5]))/1000)))
local aw=redis.call('ZRANGEBYSCORE',KEYS[1],'-inf',d-aH)
for bK,aV in ipairs(aw)do redis.call('HDEL',KEYS[2],aV)end
if#aw>0 then redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',d-aH)end
if cU==''then
local di,cZ={},ARGV[8]
if cZ~='none'then
local av=cZ==''and dp or'('..cZ
di=redis.call('XRANGE',KEYS[3],av,'+','COUNT',ARGV[9])
end
return{R(d),redis.call('HGETALL',KEYS[2]),di}
end
local dv=redis.call('ZSCORE',KEYS[1],cU)
if dv or redis.call('ZCARD',KEYS[1])<tonumber(ARGV[6])then
redis.call('ZADD',KEYS[1],d,cU)
redis.call('HSET',KEYS[2],cU,ARGV[3])
az(KEYS[1],aH)
az(KEYS[2],aH)
end
for bQ=8,#ARGV do redis.call('XADD',KEYS[3],'MAXLEN',ARGV[7],'*','denial',ARGV[bQ])end
if#ARGV>=8 then
redis.call('XTRIM',KEYS[3],'MINID',dp)
az(KEYS[3],tonumber(ARGV[5]))
end
return{R(d)}`,
  },
} as const satisfies Record<string, Script>
