program "locations" on {0} (%0: i64[]@{0}) {
  %3 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
    %2 = toy.scale(%1) {by = 2} : i64[] at "model.py:12"
    irtest.any() {value = none} at "a \"b\":c.py:3"
    return %2
  } : i64[]@{0} at "<stdin>:1"
  %4 = simp.converge(%3) : i64[]@{0} at "n\u00fa.py:100000"
  return %4
}
