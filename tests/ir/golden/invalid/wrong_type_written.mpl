// error: VerifyError: its outputs are (i64[]@{0, 1}), but it is written with (f64[]@{0, 1})
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    return %1
  } : f64[]@{0, 1}
  return %0
}
