package cuckoo
import ("testing";"math/rand/v2";"fmt")
func TestQuick(t *testing.T){
 for _,plan:=range []int{0,200000}{
 m,_:=NewMap[uint64,uint64](MapConfig{Keys:plan,Seed:1})
 twin:=map[uint64]uint64{}
 r:=rand.New(rand.NewPCG(1,2))
 worst:=0.
 for i:=range 400000{ k,v:=r.Uint64()>>16,r.Uint64()>>16
  if err:=m.Set(k,v);err!=nil{t.Fatal(i,err)}; twin[k]=v
  if i>40000 && i%7==0 { worst=max(worst,float64(m.Stats().Bytes)/float64(m.Len()))}
  if m.Stats().Stash>0 {fmt.Println("stash",i,m.Stats())}
 }
 for k,v:=range twin{ if g,ok:=m.Get(k);!ok||g!=v{t.Fatal(k)}}
 fmt.Printf("%+v %v\n",m.Stats(),worst)
 }
}
func BenchmarkGet(b *testing.B){
 n:=1000000
 m,_:=NewMap[uint64,uint64](MapConfig{Keys:n,Seed:1})
 g:=make(map[uint64]uint64,n)
 r:=rand.New(rand.NewPCG(1,2))
 ks:=make([]uint64,n)
 for i:=range ks{ks[i]=r.Uint64()>>16; m.Set(ks[i],7); g[ks[i]]=7}
 r.Shuffle(n,func(i,j int){ks[i],ks[j]=ks[j],ks[i]})
 b.Run("gomap",func(b *testing.B){s:=uint64(0);for i:=range b.N{s+=g[ks[i%n]]}; sink=s})
 b.Run("cuckoo",func(b *testing.B){s:=uint64(0);for i:=range b.N{v,_:=m.Get(ks[i%n]);s+=v}; sink=s})
 b.Run("batch",func(b *testing.B){vs:=make([]uint64,1000);for i:=0;i<b.N;i+=1000{j:=i%n; m.GetBatch(ks[j:j+1000],vs,nil)}})
 b.Run("gomiss",func(b *testing.B){s:=uint64(0);for i:=range b.N{s+=g[ks[i%n]^0x5555]}; sink=s})
 b.Run("cmiss",func(b *testing.B){s:=uint64(0);for i:=range b.N{v,_:=m.Get(ks[i%n]^0x5555);s+=v}; sink=s})
}
var sink uint64
