// error: VerifyError: its outputs are (i64[]), but it is written with (i64[1])
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[1]
    return %1
  } : i64[1]@{0, 1}
  return %0
}
