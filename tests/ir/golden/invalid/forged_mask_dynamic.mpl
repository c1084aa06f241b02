// error: VerifyError: its outputs are (i64[]@?), but it is written with (i64[]@{0, 1})
program "p" on {0, 1} (%0: i64[]@?) {
  %1 = simp.pcall_dynamic(%0) do (%2: i64[]) {
    return %2
  } : i64[]@{0, 1}
  return %1
}
