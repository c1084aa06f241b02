// error: ParseError: 64 bits
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    irtest.any() {value = [-9223372036854775809]}
    return %1
  } : i64[]@{0, 1}
  return %0
}
