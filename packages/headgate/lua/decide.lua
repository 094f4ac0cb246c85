-- decide.lua: for each question, charge the first alternative all of whose checks fit, or nothing.
-- KEYS[i]    state of check i, in the order of ARGV; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2..]  limits: how many, then four numbers each (include/checks.lua)
--            questions: how many, then each. A question of one check: minus its limit for a cost of 1, or its limit and
--            the cost. Any other: 0, how many alternatives, for each how many checks, two numbers a check; how many
--            shadow checks, two numbers each
-- returns    for a question of one check three integers (include/answers.lua). For any other: index of the
--            alternative charged or -1; for every alternative looked at and then the shadow checks, four integers a
--            check (include/several.lua).
--            -2 and an error text for a question whose state cannot be read; the others stand.
-- expiry     frees memory; no verdict depends on it
local CHARGES = true

-- @include clock
-- @include checks
-- @include answers

return answer_questions()
