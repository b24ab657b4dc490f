package cuckoo
import ("testing";"math/rand/v2";"fmt";"math")
func TestTQ(t *testing.T){
 for _,c:=range []Config{{Keys:100000,ValueBits:8,Distinct:true},{Keys:0,ValueBits:8,Distinct:true},{Keys:50000,ValueBits:16,FalsePositive:1e-6,Hashes:3},{Keys:100000,ValueBits:1,FalsePositive:.01,Hashes:4,Slots:2,Distinct:true}}{
 m,err:=New(c)
 if err!=nil{t.Fatal(err)}
 r:=rand.New(rand.NewPCG(1,2))
 tw:=map[uint64]uint64{}
 for range 100000{k:=r.Uint64();v:=r.Uint64()&(1<<c.ValueBits-1); if err:=m.InsertHash(k,v);err!=nil{t.Fatal(err,m.Stats())}; tw[k]=v}
 for k,v:=range tw{if g,ok:=m.LookupHash(k);!ok||g!=v{t.Fatal(k,v,g,ok)}}
 fp:=0
 for range 1000000{ if _,ok:=m.LookupHash(r.Uint64());ok{fp++}}
 s:=m.Stats()
 fmt.Printf("%+v fp %v vs %v sd %.2f bits/key %.2f\n",s,float64(fp)/1e6,s.FalsePositive,(float64(fp)-1e6*s.FalsePositive)/math.Sqrt(1e6*s.FalsePositive),float64(s.Bytes)*8/1e5)
 for k,v:=range tw{if !m.DeleteHash(k,v){t.Fatal("delete",k)}}
 if m.Len()!=0||len(m.stash)>0{t.Fatal(m.Len())}
 }
}
func TestLoads(t *testing.T){
 for h:=2;h<=4;h++{for b:=1;b<=4;b++{
 for _,nodes:=range []int{4096,1<<20}{
  m,_:=New(Config{Keys:int(float64(1<<18)*planned(h,b)),Hashes:h,Slots:b,FalsePositive:4e-9,Fixed:true,Search:nodes})
  r:=rand.New(rand.NewPCG(1,2))
  for m.Stats().Stash==0 { if err:=m.InsertHash(r.Uint64(),0);err!=nil{t.Fatal(err)}}
  fmt.Println(h,b,nodes,m.Stats().Load,loads[h][b],m.Stats().Work,m.reach(),m.fingerprint)
 }}}
}
