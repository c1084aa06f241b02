// error: VerifyError: its outputs are (i64[]@{0, 1}), but it is written with (i64[]@{2})
program "p" on {0, 1, 2} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    return %1
  } : i64[]@{2}
  return %0
}
