-- The same cost of one limit for each key, which is what most requests ask: one algorithm, nothing made and nothing looked up
-- that could be left out. The build puts the algorithm's name in the place of ALGORITHM.
-- @include fields
local units_text, clock = ARGV[1], ARGV[4]
-- Arithmetic makes a number of a text in half the time of tonumber.
local units, span, cost = units_text + 0, ARGV[2] + 0, (ARGV[3] or 1) + 0
-- @inline clock.read
local reply = { now }
-- Whether the key is likely a new one: then it is quicker to ask that first. After a new key comes another, mostly; and of
-- requests that come alone most are the first of their caller in a while.
local expects_new = true
local at, failure, wait_us, left, remaining, reset_us, now_text
-- @inline ALGORITHM.locals
-- @inline ALGORITHM.prepare

for index = 1, #KEYS do
  local key = KEYS[index]
  failure = nil
  -- @inline ALGORITHM.load
  if not failure then
    -- @inline ALGORITHM.wait
    left = nil
    if wait_us == 0 then
      -- @inline ALGORITHM.charge
      if at == now then
        -- @inline ALGORITHM.left
      end
    end
    if left then
      reply[index + 1] = left
    else
      -- @inline ALGORITHM.tell
      reply[index + 1] = { wait_us == NEVER and -1 or wait_us, remaining, reset_us, wait_us == 0 and at or -1 }
    end
  else
    reply[index + 1] = { failure }
  end
end
return reply
