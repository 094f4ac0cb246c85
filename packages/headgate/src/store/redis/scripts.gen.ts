// Built by scripts/build-lua.mjs from lua/*.lua. Do not edit: change the Lua and run `npm run lua`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

export const functionLibrary = 'headgate_16735270'

const clock_read = `local d,S=aY,0
if d and d~=''then
d,S=tonumber(d),600000
else
local aA=redis.call('TIME')
d=aA[1]*1000000+aA[2]
end`

const clock_text = `local function L(ag)
return string.format('%d',ag)
end
local function ar(c,ap)
redis.call('PEXPIRE',c,L(math.ceil(ap/1000)+S))
end`

const timed = `local aY=ARGV[1]
${clock_read}
${clock_text}`

const fields = `local aG,aD=math.huge,9007199254740991
local E='HEADGATE_BAD_STATE the key holds something Headgate did not write'
local function M(P)
return P and#P<=16 and string.find(P,'^%d+$')and tonumber(P)or nil
end`

const counter_locals = `local aC,aU,u,r,m,as,R`

const bucket_locals = `local q,T,ah,Q,aR,Z,ac`

const log_locals = `local o,h,F,U,aa,t,ai,aI,aK`

const check_open = `c,b,i=KEYS[bZ+aq],bO[aq],bK[aq]
local ag=4*b-1
I,f,g=bl[ag],bl[ag+1],bl[ag+2]
Y=ARGV[ag+1]`

const counter_prepare = `aC=d-d%g
aU=string.format('%d',aC)`

const hash_empty = `if k.err then
j=k.err
elseif redis.call('EXISTS',c)==1 then
j=E
end`

const fraction_floor = `local H=aE*aP
if H<=aD then
H=math.floor(H/al)
else
local aS,az,K=0,aE,268435456
H=0
while K>=1 do
local aQ=math.floor(az/K)
az=az-aQ*K
local aT=aS*128+aQ*aP
local G=math.floor(aT/al)
H=H*128+G
aS=aT-G*al
K=K/128
end
end`

const counter_load = `local k=redis.pcall('HMGET',c,'start','current','previous')
local ba=k[1]
e,m,u,r,as=d,aC,0,0,true
if ba==aU then
u=k[2]and#k[2]<=16 and string.find(k[2],'^%d+$')and tonumber(k[2])
r,as=k[3]=='0'and 0 or M(k[3]),false
if not(u and r)then
j=E
end
elseif ba then
local v,N,aH=M(ba),M(k[2]),M(k[3])
if not(v and N and aH)then
j=E
else
if v>d and v-d<=g-math.ceil(g/f)then
e,m=v,v-v%g
end
if v==m then
u,r,as=N,aH,false
elseif v+g==m then
r=N
end
end
else
${hash_empty}
end
if not j then
R=0
if r>0 then
local s=e-m
R=r*(g-s)
if R<=aD then
R=math.ceil(R/g)
else
local aE,aP,al=r,s,g
${fraction_floor}
R=r-H
end
end
end`

const counter_wait = `local bT=f-u-i
if R<=bT then
z=0
elseif i>f then
z=aG
else
local aE,aP,al=bT,g,r
z=m-d
if bT<0 then
aE,al,z=f-i,u,z+g
end
if al>aE then
${fraction_floor}
z=z+g-H
end
end`

const clock_now_text = `A=A or string.format('%d',d)`

const bucket_prepare = `Z=f*1000000
${clock_now_text}
ac=string.format('%d',2000*math.ceil(f/g)+S)`

const bucket_load = `local k=redis.pcall('HMGET',c,'tokens','lastRefill','capacity')
local D=k[1]
q,T,ah,e,Q,aR=0,0,0,d,k[3],false
if D then
local bm=#D<=17 and string.find(D,'^%d+%.?%d*$')and tonumber(D)
local ao,bk=M(k[2]),Q==Y and f or M(Q)
if not(bm and ao and bk)then
j=E
elseif ao<=d or ao-d<=(f-1)*1000000/g then
ah,e=ao,ao>d and ao or d
T=bk*1000000-math.floor(bm*1000000+0.5)
if T>Z then
T,aR=Z,true
end
q=T-math.floor((e-ah)*g)
if q<0 then
q=0
end
end
else
${hash_empty}
end`

const bucket_refill = `local s=math.ceil(ax/g)
while math.floor(s*g)<ax do
s=s+1
end
while s>0 and math.floor((s-1)*g)>=ax do
s=s-1
end`

const bucket_wait = `local bS=(f-i)*1000000
if q<=bS then
z=0
elseif bS<0 then
z=aG
else
local ax=T-bS
${bucket_refill}
z=ah+s-d
end`

const log_prepare = `${clock_now_text}
aI=string.format('%d',d-g)
aK=string.format('%d',math.ceil(g/1000)+S)`

const log_load = `local N=redis.pcall('ZRANGE',c,'-1','-1','WITHSCORES')
o,h,F,U,aa,t,ai,e=0,0,0,nil,false,nil,false,d
if N.err then
j=N.err
elseif N[1]then
o,t=#N[1]==13 and M(N[1]),tonumber(N[2])
if not(o and t>=0 and t<=aD and t%1==0)then
j=E
elseif t>d+g then
o,ai=0,true
else
if t>d then
e=t
end
if t<=e-g then
F,U,aa=o,t,true
else
local bd=e==d and aI or string.format('%d',e-g)
local at=redis.call('ZREVRANGEBYSCORE',c,bd,'-inf','WITHSCORES','LIMIT','0','2')
if at[1]then
F,U,aa=#at[1]==13 and M(at[1]),tonumber(at[2]),at[3]
if not F then
j=E
end
end
end
h=o-(F or 0)
end
end`

const log_wait = `if i>f then
z=aG
elseif h+i<=f then
z=0
else
local aZ=o+i-f
local aL=redis.call('ZCOUNT',c,'-inf',string.format('%d',e-g))
local bn=redis.call('ZRANGE',c,aL,aL,'WITHSCORES')
local bb=M(bn[1])
if bb and bb<aZ then
local bM=redis.call('ZCARD',c)-1
aL=aL+1
while bb and aL<bM do
local bD=math.floor((aL+bM)/2)
bb=M(redis.call('ZRANGE',c,bD,bD)[1])
if bb and bb>=aZ then
bM=bD
else
aL=bD+1
end
end
bn=redis.call('ZRANGE',c,aL,aL,'WITHSCORES')
end
if bb then
z=tonumber(bn[2])+g-d
else
j=E
end
end`

const sliding_window_buckets = `local function cb()
local x={}
function x.load(c,b)
local k=redis.pcall('HMGET',c,'start','counts')
local j
if not k[1]then
${hash_empty}
end
if j then
return nil,j
end
local G=math.ceil(b.window_us/b.x)
local a={c=c,G=G,y={},h=0}
local v,P=0,''
if k[1]then
v,P=M(k[1]),k[2]
if not(v and P and string.find(P,'^%d[%d,]*$'))then
return nil,E
end
end
local e=d
local bh=v-d>2*b.window_us-(b.x+1)*G
if v>d and not bh then
e=v
end
a.e,a.m=e,e-e%G
a.is_new_part=a.m~=v
local bE=bh and b.x+1 or(a.m-v)/G
if bE<=b.x then
for B=1,bE do
a.y[B]=0
end
local y,ab,h=a.y,#a.y,0
for am in string.gmatch(P,'%d+')do
if ab==b.x+1 then
break
end
ab=ab+1
am=tonumber(am)
y[ab],h=am,h+am
end
a.h=h
end
if a.h>aD then
return nil,E
end
return a
end
local function bA(b,a,B)
return a.m+(b.x+1-B)*a.G
end
function x.z(b,a,i)
if i>b.b then
return aG
end
local aO=a.h+i-b.b
if aO<=0 then
return 0
end
local B=#a.y-1
while B>0 do
aO=aO-a.y[B+1]
if aO<=0 then
break
end
B=B-1
end
return bA(b,a,B)-d
end
function x.tell(b,a)
local O=0
for C,am in ipairs(a.y)do
if am>0 then
O=bA(b,a,C-1)-d
break
end
end
return math.max(0,b.b-a.h),O
end
local function bF(b,a)
redis.call('HSET',a.c,'start',L(a.m),'counts',table.concat(a.y,','))
if a.is_new_part then
ar(a.c,math.max(0,a.m-d)+2*b.window_us)
end
end
function x.charge(b,a,i)
a.y[1]=(a.y[1]or 0)+i
a.h=a.h+i
bF(b,a)
return a.e
end
function x.charge_beyond(b,a,f)
local i=math.min(f,bH(b,a.h))
if i>0 then
x.charge(b,a,i)
end
end
function x.refund(b,a,f,p)
local bV=p and(a.m-(p-p%a.G))/a.G
local l=f
for B=#a.y-1,0,-1 do
if not p or bV==B then
local w=math.min(l,a.y[B+1])
a.y[B+1]=a.y[B+1]-w
l=l-w
end
end
if l<f then
bF(b,a)
end
return f-l
end
return x
end`

const concurrency = `local function cc()
local ad={}
local bs,be=1000000,2
local function ak(n,aB)
return aB==0 and string.format('%016d',n)or string.format('%016d.%d',n,aB)
end
local function bg(aM)
return tonumber(string.match(aM,'^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$')
or string.match(aM,'^(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)%.%d+$'))
end
function ad.load(c,b)
local ae=redis.pcall('ZRANGE',c,0,0,'WITHSCORES')
if ae.err then
return nil,ae.err
end
local a={c=c,h=0,O=0,e=d,av='('..L(d)}
a.au=d+be*b.window_us
a.aF=L(a.au)
if not ae[1]then
return a
end
local aX=string.match(ae[1],'^reset:(%d+)$')
a.O=aX and tonumber(aX)or 0
if not(aX or bg(ae[1]))then
return nil,E
end
a.h=redis.call('ZCOUNT',c,a.av,a.aF)
a.dead=redis.call('ZCARD',c)-a.h>(aX and 1 or 0)
return a
end
function ad.z(b,a,i)
if i>b.b then
return aG
end
local aZ=a.h+i-b.b
if aZ<=0 then
return 0
end
local K=redis.call('ZRANGEBYSCORE',a.c,a.av,a.aF,'WITHSCORES','LIMIT',aZ-1,1)
return K[2]and math.min(bs,tonumber(K[2])-d)or bs
end
function ad.tell(b,a)
if a.h==0 then
return b.b,0
end
local aV=redis.call('ZREVRANGEBYSCORE',a.c,a.aF,a.av,'WITHSCORES','LIMIT',0,1)
return math.max(0,b.b-a.h),tonumber(aV[2])-d
end
local function bw(a)
if a.dead then
redis.call('ZREMRANGEBYSCORE',a.c,0,L(d))
redis.call('ZREMRANGEBYSCORE',a.c,'('..a.aF,'+inf')
a.dead=false
end
end
local function by(b,a,n,f)
local an=L(d+b.window_us)
for aB=0,f-1 do
redis.call('ZADD',a.c,an,ak(n,aB))
end
ar(a.c,be*b.window_us)
end
function ad.charge(b,a,i)
bw(a)
local n=math.max(d,a.O+1)
while redis.call('ZSCORE',a.c,ak(n,0))do
n=n+1
end
by(b,a,n,i)
a.h=a.h+i
return n
end
local function bx(a,n,f)
local J=0
while redis.call('ZSCORE',a.c,ak(n,J))do
J=J+1
end
local w=math.min(f,J)
for aB=J-w,J-1 do
redis.call('ZREM',a.c,ak(n,aB))
end
return w
end
function ad.charge_beyond()end
local function bY(a,n)
local an=tonumber(redis.call('ZSCORE',a.c,ak(n,0))or nil)
return an and an>d and an<=a.au
end
function ad.refund(bt,a,f,n)
if n then
return bY(a,n)and bx(a,n,f)or 0
end
local l=math.min(f,a.h)
local w=l
while l>0 do
local ae=redis.call('ZRANGEBYSCORE',a.c,a.av,a.aF,'LIMIT',0,1)
l=l-bx(a,bg(ae[1]),l)
end
return w
end
function ad.renew(b,a,f,n)
bw(a)
local J=0
while redis.call('ZSCORE',a.c,ak(n,J))do
J=J+1
end
if J==0 and a.h+f>b.b then
return 0
end
by(b,a,n,J>0 and J or f)
return 1
end
function ad.start_new_life(b,a)
local au=a.O
for bt,aM in ipairs(redis.call('ZRANGE',a.c,0,-1))do
au=math.max(au,bg(aM)or 0)
end
redis.call('DEL',a.c)
redis.call('ZADD',a.c,-1,'reset:'..L(au))
ar(a.c,be*b.window_us)
end
return ad
end`

const counter_charge = `u=u+i
if as then
local cF=m==aC and aU or string.format('%d',m)
local cB=r==0 and'0'or string.format('%d',r)
redis.call('HSET',c,'start',cF,'current',string.format('%d',u),'previous',cB)
local ap=(m>d and m-d or 0)+2*g
redis.call('PEXPIRE',c,string.format('%d',math.ceil(ap/1000)+S))
else
redis.call('HSET',c,'current',string.format('%d',u))
end`

const counter_left = `l=f-u-R`

const bucket_save = `T,ah=q,e
local aw=Z-q
local ay=aw%1000000
local D,W,aj=nil,A,ac
if ay==0 then
D=string.format('%d',aw/1000000)
else
D=string.format('%d.%06d',(aw-ay)/1000000,ay)
end
if e~=d then
W=string.format('%d',e)
aj=string.format('%d',ac+math.ceil((e-d)/1000))
end
if Q==Y then
redis.call('HSET',c,'tokens',D,'lastRefill',W)
else
redis.call('HSET',c,'tokens',D,'lastRefill',W,'capacity',Y)
Q=Y
end
redis.call('PEXPIRE',c,aj)`

const bucket_charge = `q=q+i*1000000
${bucket_save}`

const bucket_left = `l=Z-q`

const log_charge = `if ai then
redis.call('ZADD',c,'0','0000000000000')
redis.call('DEL',c)
ai=false
elseif o+i>9999999999999 then
local X=redis.call('ZRANGEBYSCORE',c,'('..string.format('%d',e-g),'+inf','WITHSCORES')
redis.call('ZADD',c,'0','0000000000000')
redis.call('DEL',c)
for C=1,#X,2 do
local bL=(tonumber(X[C])or F)-F
redis.call('ZADD',c,X[C+1],string.format('%013d',bL))
end
o,F,U,aa=h,0,nil,false
end
o,h,t=o+i,h+i,e
local W,aj=A,aK
if e~=d then
W=string.format('%d',e)
aj=string.format('%d',math.ceil((e-d+g)/1000)+S)
end
redis.call('ZADD',c,W,string.format('%013d',o))
if aa then
redis.call('ZREMRANGEBYSCORE',c,'-inf','('..string.format('%d',U))
end
redis.call('PEXPIRE',c,aj)`

const log_left = `l=f-h`

const counter_tell = `aN=f-u-R
if aN<0 then
aN=0
end
if u>0 then
O=m+2*g-d
elseif r>0 then
O=m+g-d
else
O=0
end`

const bucket_tell = `aN,O=f,0
if q>0 then
local ax=T
${bucket_refill}
aN,O=f-math.ceil(q/1000000),ah+s-d
end`

const log_tell = `aN=h<f and f-h or 0
O=h==0 and 0 or t+g-d`

const questions = `local bi,bo,ck,bI,bU=1,2,3,4,5
local aY=ARGV[1]
${clock_read}
${fields}
local c,b,i,I,f,Y,g
local e,j,z,l,aN,O,A
${counter_locals}
${bucket_locals}
${log_locals}
local aJ,cs,cr,bG,cl={},{},{},{},{}
local cq,cp,bq,bc,br
local cG={}
local bl,V={0,0},3+4*ARGV[2]
for C=3,V-1 do
bl[C]=tonumber(ARGV[C])
end
local bO,bK,ca,bj,cm,bf={},{},{},0,0,0
local af,ab,bZ={d},1,0
while ARGV[V]do
local bQ=tonumber(ARGV[V])
local co=bQ<=0
V=V+1
if co then
bO[1],bK[1],ca[1]=-bQ,1,1
if bQ==0 then
bO[1],bK[1]=tonumber(ARGV[V]),tonumber(ARGV[V+1])
V=V+2
end
bQ,bj,cm,bf=1,1,1,1
else
bj,bf=tonumber(ARGV[V]),0
for bp=1,bj+1 do
local cz=tonumber(ARGV[V+1])
V=V+1
for cQ=1,cz do
bf=bf+1
bO[bf],bK[bf]=tonumber(ARGV[V+1]),tonumber(ARGV[V+2])
V=V+2
if bp>bj then
ca[bj+cQ]=bf
end
end
if bp>bj then
cm=bj+cz
else
ca[bp]=bf
end
end
V=V+1
end
for bt=1,bQ do
local cd,bJ,aV=ab+1,-1,0
if not co then
ab=cd
end
for bp=1,cm do
local ae,bW,cn=aV+1,true,bp>bj
aV=ca[bp]
if cn or bJ<0 then
j=nil
for aq=ae,aV do
${check_open}
if I==bo then
aC,aU=cs[b],cr[b]
if not aC then
${counter_prepare}
cs[b],cr[b]=aC,aU
end
${counter_load}
if not j then
${counter_wait}
end
elseif I==bI then
Z,ac=f*1000000,bG[b]
if not ac then
${bucket_prepare}
bG[b]=ac
end
${bucket_load}
if not j then
${bucket_wait}
end
elseif I==bi then
aI,aK=cl[b],bG[b]
if not aI then
${log_prepare}
cl[b],bG[b]=aI,aK
end
${log_load}
if not j then
${log_wait}
end
else
if not cq then
${clock_text}
${sliding_window_buckets}
${concurrency}
cq,cp={[ck]=cb(),[bU]=cc()},{}
end
bq,bc=cq[I],cp[b]
if not bc then
bc={b=f,window_us=g,x=bl[ag+3]}
cp[b]=bc
end
br,j=bq.load(c,bc)
if br then
z=bq.z(bc,br,i)
end
end
if j then
break
end
bW=bW and z==0
if ae<aV then
if I==bo then
aJ[aq]={u,r,m,as,R,e}
elseif I==bI then
aJ[aq]={q,T,ah,Q,e}
elseif I==bi then
aJ[aq]={o,h,F,U or false,aa,t or false,ai,e}
else
aJ[aq]={bq,bc,br}
end
cG[aq]=z
end
end
if j and not cn then
for C=ab,cd,-1 do
af[C]=nil
end
bJ,ab={j},cd
af[ab]=bJ
break
elseif j then
ab=ab+1
af[ab]={0,0,0,-1}
else
for aq=ae,aV do
if ae<aV then
${check_open}
if I==bo then
aC,aU=cs[b],cr[b]
local a=aJ[aq]
u,r,m,as,R,e=a[1],a[2],a[3],a[4],a[5],a[6]
elseif I==bI then
Z,ac=f*1000000,bG[b]
local a=aJ[aq]
q,T,ah,Q,e=a[1],a[2],a[3],a[4],a[5]
elseif I==bi then
aI,aK=cl[b],bG[b]
local a=aJ[aq]
o,h,F,U,aa=a[1],a[2],a[3],a[4],a[5]
t,ai,e=a[6],a[7],a[8]
else
bq,bc,br=aJ[aq][1],aJ[aq][2],aJ[aq][3]
end
z=cG[aq]
end
ab=ab+1
local p=-1
if bW and cJ and i>0 then
l=nil
if I==bo then
${counter_charge}
${counter_left}
elseif I==bI then
${bucket_charge}
${bucket_left}
elseif I==bi then
${log_charge}
${log_left}
else
e=bq.charge(bc,br,i)
end
p=e
end
if p==d and l then
af[ab]=l
else
if I==bo then
${counter_tell}
elseif I==bI then
${bucket_tell}
elseif I==bi then
${log_tell}
else
aN,O=bq.tell(bc,br)
end
af[ab]={z==aG and-1 or z,aN,O,p}
end
end
if bW and not cn then
bJ=bp-1
end
end
end
end
bZ=bZ+bf
if not co then
af[cd]=bJ
end
end
end
return af`

const checks = `${fields}
local function bH(b,h)
return math.max(0,math.min(2*b.b,4294967295)-h)
end
local function cw()
local bC={}
function bC.load(c,b)
local g,e,j,A=b.window_us,nil,nil,nil
${log_locals}
${log_prepare}
${log_load}
if j then
return nil,j
end
return{
c=c,
o=o,
h=h,
aa=aa,
F=F,
U=U,
t=t,
ai=ai,
e=e,
}
end
local function ak(o)
return string.format('%013d',o)
end
function bC.charge_beyond(b,a,f)
local i,c,g,e=math.min(f,bH(b,a.h)),a.c,b.window_us,a.e
local o,h,F,U=a.o,a.h,a.F,a.U
local aa,t,ai=a.aa,a.t,a.ai
local A,aI,aK
if i>0 then
${log_prepare}
${log_charge}
end
end
function bC.refund(b,a,f,p)
if a.h==0 then
return 0
end
local bd=a.e-b.window_us
if p and p<=bd then
return 0
end
local av=p and L(p)or'('..L(bd)
local X=redis.call('ZRANGEBYSCORE',a.c,av,'+inf','WITHSCORES')
if#X==0 or(p and tonumber(X[2])~=p)then
return 0
end
local bR=redis.call('ZRANK',a.c,X[1])
local aH=bR>0 and tonumber(redis.call('ZRANGE',a.c,bR-1,bR-1)[1])or 0
if p and tonumber(X[1])==aH then
return 0
end
local l,bN,cg=f,aH,aH
redis.call('ZREMRANGEBYSCORE',a.c,av,'+inf')
if a.U then
redis.call('ZREMRANGEBYSCORE',a.c,'-inf',a.U)
redis.call('ZADD',a.c,0,ak(a.F))
end
for C=1,#X,2 do
local o,cj=tonumber(X[C]),tonumber(X[C+1])
local i=o-cg
local w=0
if not p or cj==p then
w=math.min(l,i)
end
cg=o
l=l-w
if w<i or i==0 then
bN=bN+i-w
redis.call('ZADD',a.c,cj,ak(bN))
end
end
ar(a.c,math.max(0,a.t-d)+b.window_us)
return f-l
end
return bC
end
local function cv()
local bv={}
function bv.load(c,b)
local f,g,e,j=b.b,b.window_us,nil,nil
${counter_locals}
${counter_prepare}
${counter_load}
if j then
return nil,j
end
return{
c=c,
u=u,
r=r,
R=R,
e=e,
m=m,
as=as,
}
end
local function ci(b,a)
local m,u,r=L(a.m),L(a.u),L(a.r)
redis.call('HSET',a.c,'start',m,'current',u,'previous',r)
if a.as then
ar(a.c,math.max(0,a.m-d)+2*b.window_us)
end
end
function bv.charge_beyond(b,a,f)
local i=math.min(f,bH(b,a.u+a.R))
if i>0 then
a.u=a.u+i
ci(b,a)
end
end
function bv.refund(b,a,f,p)
local cf=p and p-p%b.window_us
local l=f
if not p or cf==a.m-b.window_us then
local w=math.min(l,a.r)
a.r,l=a.r-w,l-w
end
if not p or cf==a.m then
local w=math.min(l,a.u)
a.u,l=a.u-w,l-w
end
if l<f then
ci(b,a)
end
return f-l
end
return bv
end
${sliding_window_buckets}
local function cu()
local bu={}
function bu.load(c,b)
local f,Y,g,e,j=b.b,b.limit_text,b.refill_per_second,nil,nil
local A
${bucket_locals}
${bucket_prepare}
${bucket_load}
if j then
return nil,j
end
b.ap=2000000*math.ceil(f/g)
return{c=c,q=q,e=e,Q=Q,aR=aR}
end
function bu.charge_beyond(b,a,cy)
local c,e,Q,q=a.c,a.e,a.Q,a.q+cy*1000000
local f,Y,g,T,ah=b.b,b.limit_text,b.refill_per_second
local Z,A,ac
if f==0 then
return
end
${bucket_prepare}
if q>f*1000000 then
local ax=q-f*1000000
${bucket_refill}
e=d+math.min(math.floor((f-1)*1000000/g),e-d+s)
q=f*1000000
end
${bucket_save}
end
function bu.refund(b,a,f,p,bX)
if a.aR or(p and d-p>=b.ap)then
return 0
end
local cD=math.max(0,d-bX)*b.refill_per_second
local w=math.min(math.max(0,f-math.ceil(cD/1000000))*1000000,a.q)
if w>0 then
local c,e,Q,q=a.c,a.e,a.Q,a.q-w
local f,Y,g,T,ah=b.b,b.limit_text,b.refill_per_second
local Z,A,ac
${bucket_prepare}
${bucket_save}
end
return math.ceil(w/1000000)
end
return bu
end
${concurrency}
local V=1
local function aW()
V=V+1
return tonumber(ARGV[V])
end
local function cC()
local cx,bP,bB={cw,cv,cb,cu,cc},{},{}
for C=1,aW()do
local I,f,ag,cA=aW(),aW(),aW(),aW()
bP[I]=bP[I]or cx[I]()
bB[C]={
I=I,
algorithm=bP[I],
b=f,
limit_text=ARGV[V-2],
window_us=ag,
refill_per_second=ag,
x=cA,
}
end
return bB
end`

const new_life = `local bi,bo,ck,bU=1,2,3,5
local function cE(c)
return M(redis.call('HMGET',c,'reset')[1])or 0
end
local function cU(b,c,p)
return b.I~=bi and b.I~=bU and p and p<=cE(c)
end
local function cS(b)
if b.I==bo then
return'start','0','current','0','previous','0'
elseif b.I==ck then
return'start','0','counts','0'
end
return'tokens',b.limit_text,'lastRefill','0','capacity',b.limit_text
end
local function start_new_life(b,c,a)
if b.I==bU then
return b.algorithm.start_new_life(b,a)
end
local ct=math.max(0,a.e-d)
if b.I~=bi then
local cR=math.max(a.e,cE(c))
redis.call('DEL',c)
redis.call('HSET',c,'reset',L(cR),cS(b))
ar(c,ct+(b.ap or 2*b.window_us))
return
end
redis.call('DEL',c)
if not a.ai and a.t>a.e-b.window_us then
redis.call('ZADD',c,L(a.e),string.format('%013d',0))
ar(c,ct+b.window_us)
end
end`

export const scripts = {
  changes: {
    sha: '6b0ea392f489c7b5ffb60547775932fd143ebc97',
    functionName: 'headgate_16735270_changes',
    text: `${timed}
if ARGV[2]~=''then
redis.call('LPUSH',KEYS[1],string.format('%.0f ',math.floor(d/1000))..ARGV[2])
redis.call('LTRIM',KEYS[1],0,tonumber(ARGV[3])-1)
ar(KEYS[1],tonumber(ARGV[4]))
end
return redis.call('LRANGE',KEYS[1],0,-1)`,
  },
  control: {
    sha: 'd36956d3569b79306d6fe497b6f996ca398fca00',
    functionName: 'headgate_16735270_control',
    text: `for bz=1,#ARGV,2 do
redis.call('HSET',KEYS[1],ARGV[bz],ARGV[bz+1])
end
local k={'enabled','multiplier'}
local db=redis.call('HMGET',KEYS[1],k[1],k[2])
local af={}
for bz,dc in ipairs(k)do
if db[bz]then
af[#af+1]=dc
af[#af+1]=db[bz]
end
end
return af`,
  },
  decide: {
    sha: 'fd18cc2dd5b0ec4587fcb6f4db0f25a5b4d7cebd',
    functionName: 'headgate_16735270_decide',
    text: `local cJ=true
${questions}`,
  },
  decide_bucket: {
    sha: '8f182bcc941d7bd8b69469cdc3e0d6434be124aa',
    functionName: 'headgate_16735270_decide_bucket',
    text: `local Y,aY=ARGV[1],ARGV[4]
local f,g,i=tonumber(Y),tonumber(ARGV[2]),tonumber(ARGV[3])
${clock_read}
${fields}
local af={d}
local e,j,z,l,aN,O,A
${bucket_locals}
${bucket_prepare}
for C=1,#KEYS do
local c=KEYS[C]
j=nil
${bucket_load}
if not j then
${bucket_wait}
l=nil
if z==0 then
${bucket_charge}
if e==d then
${bucket_left}
end
end
if l then
af[C+1]=l
else
${bucket_tell}
af[C+1]={z==aG and-1 or z,aN,O,z==0 and e or-1}
end
else
af[C+1]={j}
end
end
return af`,
  },
  decide_counter: {
    sha: '66547f8ff04a860beff1f40e584238877864ec61',
    functionName: 'headgate_16735270_decide_counter',
    text: `local Y,aY=ARGV[1],ARGV[4]
local f,g,i=tonumber(Y),tonumber(ARGV[2]),tonumber(ARGV[3])
${clock_read}
${fields}
local af={d}
local e,j,z,l,aN,O,A
${counter_locals}
${counter_prepare}
for C=1,#KEYS do
local c=KEYS[C]
j=nil
${counter_load}
if not j then
${counter_wait}
l=nil
if z==0 then
${counter_charge}
if e==d then
${counter_left}
end
end
if l then
af[C+1]=l
else
${counter_tell}
af[C+1]={z==aG and-1 or z,aN,O,z==0 and e or-1}
end
else
af[C+1]={j}
end
end
return af`,
  },
  decide_log: {
    sha: '87ed0054a900cf1454f06d29404c1078d19f10e8',
    functionName: 'headgate_16735270_decide_log',
    text: `local Y,aY=ARGV[1],ARGV[4]
local f,g,i=tonumber(Y),tonumber(ARGV[2]),tonumber(ARGV[3])
${clock_read}
${fields}
local af={d}
local e,j,z,l,aN,O,A
${log_locals}
${log_prepare}
for C=1,#KEYS do
local c=KEYS[C]
j=nil
${log_load}
if not j then
${log_wait}
l=nil
if z==0 then
${log_charge}
if e==d then
${log_left}
end
end
if l then
af[C+1]=l
else
${log_tell}
af[C+1]={z==aG and-1 or z,aN,O,z==0 and e or-1}
end
else
af[C+1]={j}
end
end
return af`,
  },
  heartbeat: {
    sha: '31ce00380a8d52a814e54f33e094b93040adecd2',
    functionName: 'headgate_16735270_heartbeat',
    text: `${timed}
local ap=tonumber(ARGV[3])
local cY=tonumber(ARGV[4])
local cZ=ARGV[5]
local aH=redis.call('ZSCORE',KEYS[1],ARGV[2])
redis.call('ZADD',KEYS[1],d,ARGV[2])
redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',d-cY)
redis.call('ZREMRANGEBYSCORE',KEYS[1],d+ap,'+inf')
ar(KEYS[1],cY)
local function am(av,aF)
if cZ==''then return redis.call('ZCOUNT',KEYS[1],av,aF)end
local cO=0
for bt,aM in ipairs(redis.call('ZRANGEBYSCORE',KEYS[1],av,aF))do
local da=string.find(aM,'/',1,true)
if not da or string.sub(aM,1,da-1)==cZ then cO=cO+1 end
end
return cO
end
local cW=am(d-ap,'+inf')
local de=am('-inf','('..string.format('%.0f',d-ap))
return{cW,string.format('%.0f',d),aH or'',cW+de,redis.call('ZCARD',KEYS[1])}`,
  },
  overrides: {
    sha: 'b2c27f0c59072c2afd5ef6cf35b71e68c959e76e',
    functionName: 'headgate_16735270_overrides',
    text: `${timed}
local cX=d
local d=math.floor(cX/1000)
local c=KEYS[1]
local cL='#revision'
local cK='#next-end'
if ARGV[3]=='read'and ARGV[2]~=''then
local cP=redis.call('HMGET',c,cL,cK)
if cP[1]==ARGV[2]and d<(tonumber(cP[2]or'0')or 0)then
return{d,cP[1],0,'same'}
end
end
local X=redis.call('HGETALL',c)
local aJ={}
local am=0
local ch=''
local cI=0
local cM=false
local cN=math.huge
local au=d
local function cV(ce,bn,an)
aJ[#aJ+1]=ce
aJ[#aJ+1]=bn
cN=math.min(cN,an)
au=math.max(au,an)
end
for bz=1,#X,2 do
local ce=X[bz]
if ce==cL then
ch=X[bz+1]
elseif ce~=cK then
local an=tonumber(string.match(X[bz+1],'^%d+ (%d+) ')or'0')
if an>8.64e15 then an=0 end
if ce==ARGV[4]and an>d then cI=1 end
local dg=ce==ARGV[4]and ARGV[3]=='remove'
if an<=d or dg then
redis.call('HDEL',c,ce)
cM=true
elseif not(ce==ARGV[4]and ARGV[3]=='put')then
cV(ce,X[bz+1],an)
am=am+1
end
end
end
local cT=ARGV[3]=='put'and am>=tonumber(ARGV[7])
if ARGV[3]=='put'and not cT then
local an=d+tonumber(ARGV[6])
local bn=string.format('%.0f %.0f ',d,an)..ARGV[5]
redis.call('HSET',c,ARGV[4],bn)
cV(ARGV[4],bn,an)
cM=true
end
if cM then
ch=string.format('%.0f',math.max(cX,(tonumber(ch)or 0)+1))
if#aJ>0 then
redis.call('HSET',c,cL,ch,cK,string.format('%.0f',cN))
ar(c,(au-d)*1000)
else
redis.call('DEL',c)
ch=''
end
end
if cT then
return{d,'full',cI}
end
if ARGV[2]~=''and ch==ARGV[2]then
return{d,ch,cI,'same'}
end
local af={d,ch,cI}
for bz=1,#aJ do af[#af+1]=aJ[bz]end
return af`,
  },
  peek: {
    sha: '0df7286f0f7e33faacfbe996a19338fc7afe17ae',
    functionName: 'headgate_16735270_peek',
    text: `local cJ=false
${questions}`,
  },
  refund: {
    sha: '76a908ec08fd8247c5a0522c77a27bfeabdcbceb',
    functionName: 'headgate_16735270_refund',
    text: `${timed}
${checks}
${new_life}
local bB=cC()
local af={}
for C,c in ipairs(KEYS)do
local b,f,p,bX=bB[aW()],aW(),aW(),aW()
if p==-1 then
p=nil
end
if bX==-1 then
bX=d
end
local a=b.algorithm.load(c,b)
if not a then
af[C]=-2
elseif f<0 then
b.algorithm.charge_beyond(b,a,-f)
af[C]=0
elseif cU(b,c,p)then
af[C]=0
else
af[C]=b.algorithm.refund(b,a,f,p,bX)
end
end
return af`,
  },
  renew: {
    sha: '852df0399a6346ed805e8ed7504c339e29333d40',
    functionName: 'headgate_16735270_renew',
    text: `${timed}
${checks}
local bB=cC()
local af={}
for C,c in ipairs(KEYS)do
local b,f,n=bB[aW()],aW(),aW()
local a=b.algorithm.load(c,b)
af[C]=a and b.algorithm.renew(b,a,f,n)or-2
end
return af`,
  },
  reset: {
    sha: '94d9416fbe75a945004671186b6d28b316672155',
    functionName: 'headgate_16735270_reset',
    text: `${timed}
${checks}
${new_life}
local bB=cC()
local bh=0
for bt,c in ipairs(KEYS)do
local b=bB[aW()]
local a=b.algorithm.load(c,b)
if a and redis.call('EXISTS',c)==1 then
start_new_life(b,c,a)
bh=bh+1
end
end
return bh`,
  },
  statistics: {
    sha: '4a9c3d3930121dc5470555393c7e0a44d1433be7',
    functionName: 'headgate_16735270_statistics',
    text: `${timed}
local ap=tonumber(ARGV[4])
local cH=ARGV[2]
local at=redis.call('ZRANGEBYSCORE',KEYS[1],'-inf',d-ap)
for bt,aM in ipairs(at)do redis.call('HDEL',KEYS[2],aM)end
if#at>0 then redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',d-ap)end
if cH==''then
return{L(d),redis.call('HGETALL',KEYS[2]),redis.call('ZRANGE',KEYS[3],0,-1)}
end
local dd=redis.call('ZSCORE',KEYS[1],cH)
if dd or redis.call('ZCARD',KEYS[1])<tonumber(ARGV[6])then
redis.call('ZADD',KEYS[1],d,cH)
redis.call('HSET',KEYS[2],cH,ARGV[3])
ar(KEYS[1],ap)
ar(KEYS[2],ap)
end
local df=tonumber(ARGV[7])
for bz=8,#ARGV do redis.call('ZADD',KEYS[3],d,ARGV[bz])end
if#ARGV>=8 then
redis.call('ZREMRANGEBYSCORE',KEYS[3],'-inf',d-tonumber(ARGV[5]))
local aO=redis.call('ZCARD',KEYS[3])-df
if aO>0 then
local aV=redis.call('ZRANGE',KEYS[3],aO-1,aO-1,'WITHSCORES')
redis.call('ZREMRANGEBYSCORE',KEYS[3],'-inf',aV[2])
end
ar(KEYS[3],tonumber(ARGV[5]))
end
return{L(d)}`,
  },
} as const satisfies Record<string, Script>
