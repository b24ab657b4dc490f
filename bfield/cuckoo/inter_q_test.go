package cuckoo
import ("testing";"math/rand/v2";"fmt";"slices";"syscall";"os";"strconv";"runtime";"unsafe")
func cpu() int64 { var ts syscall.Timespec; syscall.Syscall(syscall.SYS_CLOCK_GETTIME,3,uintptr(unsafe.Pointer(&ts)),0); return ts.Nano()}
func TestInter(t *testing.T){
 if os.Getenv("INTER")=="" {t.Skip()}
 n,_:=strconv.Atoi(os.Getenv("INTER"))
 runtime.LockOSThread()
 m,_:=NewMap[uint64,uint64](MapConfig{Keys:n,Seed:1})
 g:=make(map[uint64]uint64,n)
 r:=rand.New(rand.NewPCG(1,2))
 ks:=make([]uint64,n)
 for i:=range ks{ks[i]=r.Uint64()>>16; m.Set(ks[i],7); g[ks[i]]=7}
 r.Shuffle(n,func(i,j int){ks[i],ks[j]=ks[j],ks[i]})
 fmt.Printf("%+v\n",m.Stats())
 const L=20000
 out:=make([]uint64,L)
 res:=map[string][]float64{}
 for rep:=range 200{
  _=rep
  var part []uint64
  run:=func(name string,f func()){ o:=r.IntN(n-L); part=ks[o:o+L];a:=cpu();f();res[name]=append(res[name],float64(cpu()-a)/L)}
  run("go",func(){s:=uint64(0);for _,k:=range part{s+=g[k]};sink=s})
  run("ck",func(){s:=uint64(0);for _,k:=range part{v,_:=m.Get(k);s+=v};sink=s})
  run("batch",func(){m.GetBatch(part,out,nil)})
  run("gomiss",func(){s:=uint64(0);for _,k:=range part{s+=g[k^0x5555]};sink=s})
  run("ckmiss",func(){s:=uint64(0);for _,k:=range part{v,_:=m.Get(k^0x5555);s+=v};sink=s})
 }
 for _,k:=range []string{"go","ck","batch","gomiss","ckmiss"}{v:=res[k];slices.Sort(v);fmt.Printf("%s median %.1f p10 %.1f\n",k,v[len(v)/2],v[len(v)/10])}
}
