// error: ParseError: %2 is defined twice
program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[]@{0}) {
  %2, %2 = func.call(%0, %1) {name = "f"} body (%3: i64[]@{0}, %4: i64[]@{0}) {
    return %3, %4
  } : i64[]@{0}, i64[]@{0}
  return %2
}
