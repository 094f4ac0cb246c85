-- Quota; see src/algorithms/quota.ts.
-- @kind quota units span terms_text
--
-- One number, (previous * 10^7 + used) * 10 + period % 10: 300000052 is 3 units in the period before and 5 in this one, whose
-- number ends in 2. A charge is INCRBY. It expires `span` after the end of its period, and no period is longer: a time to live above
-- `span` says that the period has not ended. What the number cannot say is a text,
-- `previous:used:end of the period in ms:reset in ms:credits:spent:gift:over:peak:spent before:over before`.
-- `span` is in milliseconds; `terms` are sent with each call, because they change with the time: the digit of a period, its
-- start, its end and those of the next two in seconds; if there is either, the most that is carried over, and 1 if what is beyond
-- is counted. So short, Redis keeps it in one allocation.
-- This server's clock picks among the first two periods. If it is in neither, nothing is done, and the time is said.

-- @period
local digit_N, start_N, end_N, next_N, after_N, most_N, counts_N = string.match(terms_text_N, '^(%d)(%d+):(%d+):(%d+):(%d+):?(%d*):?(%d*)$')
start_N, end_N, next_N = start_N * 1000, end_N * 1000, next_N * 1000
if now_ms >= end_N then
  digit_N, start_N, end_N, next_N = (digit_N + 1) % 10, end_N, next_N, after_N * 1000
end
if now_ms < start_N or now_ms >= end_N then
  error('HEADGATE_PERIOD ' .. string.format('%d', now), 0)
end

-- @current
  -- @period

-- @prepare
  -- @period
local is_plain_N = most_N == ''
digit_N, most_N = digit_N + 0, is_plain_N and 0 or most_N + 0

-- @rich
-- What was read of a number, as a text would say it.
rich_N = rich_N or { previous_N, used_N, ahead_N and next_N or end_N, 0, 0, 0, 0, 0, 0, 0, 0 }

-- @load
if reads_ttl then
  odd_ttl = wrong_ttl(key_N, span_N)
end
local value_N = call('GET', key_N)
local used_N, previous_N, odd_N, ahead_N, in_place_N, rich_N = 0, 0, false, false, false, nil
if value_N then
  -- A number has at most fifteen digits, and a text more. What is not a number raises an error here; what INCRBY does not take for
  -- one is told before anything is charged, and with only one limit by INCRBY itself.
  local number = #value_N < 16 and value_N + 0
  if number and number % 10 == digit_N and number >= 0 and not odd_ttl and (is_only_limit or find(value_N, '^%d+$') and not find(value_N, '^0.')) then
    used_N, in_place_N = (number - digit_N) / 10, true
    if used_N > 9999999 then
      local both = used_N
      used_N = both % 10000000
      previous_N = (both - used_N) / 10000000
    end
  elseif number and find(value_N, '^%d+$') and not find(value_N, '^0.') then
    local tag = number % 10
    local both = (number - tag) / 10
    local newest = both % 10000000
    local before = (both - newest) / 10000000
    local later = (tag - digit_N + 1) % 10 - 1
    if odd_ttl and odd_ttl > 0 and (later ~= 1 or odd_ttl > 3 * span_N) then
      -- From before a step of the clock, and too far from now to count.
      later = 2
    end
    if later == 0 or later == 1 then
      -- In the next period the clock has stepped back, and time waits at its start.
      used_N, previous_N, in_place_N, ahead_N = newest, before, true, later == 1
    elseif later == -1 then
      previous_N = newest
    end
  else
    rich_N, ahead_N = quota_state(value_N, start_N, end_N, next_N)
  end
end
if ahead_N or not is_plain_N then
  -- @rich
end
local left_N = units_N - cost_N - used_N
if rich_N then
  odd_N = true
  left_N = quota_left(rich_N, units_N, most_N)
  if rich_N[5] > 0 then
    left_N = math.max(0, left_N) + rich_N[5]
  end
  left_N = left_N - cost_N
  if left_N < 0 and counts_N == '1' and rich_N[2] + cost_N <= 4294967295 then
    left_N = 0
  end
end

-- @write
-- In: `state`, a table as quota_state returns it.
quota_write(key_N, state, ahead_N and (digit_N + 1) % 10 or digit_N, span_N, shift_ms)

-- @charge
if rich_N then
  local state = quota_charged(rich_N, units_N, most_N, counts_N, cost_N)
  -- @write
elseif in_place_N and used_N + cost_N <= 9999999 and not odd_ttl then
  call('INCRBY', key_N, cost_N == 1 and '10' or format('%d0', cost_N))
else
  used_N = used_N + cost_N
  -- @rich
  local state = rich_N
  -- @write
end

-- @state unpack(rich_N)

-- @deny
if value_N and not find(value_N, '^[%d:]+$') then
  error(BAD_STATE, 0)
end
  -- @rich

-- @functions
-- The state of a text in this period, or in the next one if it is of that.
local function quota_state(value, starts, ends, next)
  local state = { string.match(value, '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$') }
  if #state ~= 11 or #value > 160 then
    error(BAD_STATE, 0)
  end
  for index = 1, 11 do
    state[index] = state[index] + 0
  end
  if state[3] == ends then
    return state, false
  elseif state[3] == next then
    return state, true
  elseif state[3] == starts then
    return { state[2], 0, ends, 0, state[5], 0, 0, 0, 0, state[6], state[8] }, false
  end
  return { 0, 0, ends, 0, state[5], 0, 0, 0, 0, 0, 0 }, false
end
-- What is left of the limit, with what was carried over and credited for this period; below 0 if more was used.
local function quota_left(state, units, most)
  local carried = 0
  if most > 0 and state[1] > 0 then
    carried = math.min(most, math.max(0, units - (state[1] - state[10] - state[11])))
  end
  return units + carried + state[7] - (state[2] - state[6] - state[8])
end
local function quota_charged(state, units, most, counts, cost)
  local beyond = math.max(0, cost - math.max(0, quota_left(state, units, most)))
  local paid = math.min(beyond, state[5])
  local over = counts == '1' and beyond - paid or 0
  return {
    state[1], state[2] + cost, state[3], state[4], state[5] - paid, state[6] + paid, state[7], state[8] + over, state[9],
    state[10], state[11],
  }
end
local function quota_write(key, state, digit, span, shift)
  local value
  local is_number = state[1] <= 9999999 and state[2] <= 9999999 and state[9] <= state[2]
  for index = 4, 11 do
    is_number = is_number and (index == 9 or state[index] == 0)
  end
  if is_number then
    value = format('%d', (state[1] * 10000000 + state[2]) * 10 + digit)
  else
    for index = 1, 11 do
      state[index] = format('%d', state[index])
    end
    value = table.concat(state, ':')
  end
  -- Credits that last outlive every period: a hundred years.
  local lasts = (is_number or state[5] == '0') and span or 3155760000000
  call('SET', key, value, 'PXAT', format('%d', state[3] + lasts + shift))
end

-- @alone
-- The time to live of the only key says whether its period has ended, and when it does. One integer is the whole reply: what is left
-- and the milliseconds until then. A new key takes its period from the server's clock. Everything else goes on below.
local ttl = call('PTTL', key_N)
if ttl > span_N and ttl <= 2 * span_N then
  local value = call('GET', key_N)
  local number = #value < 16 and value + 0
  if number and number >= 0 then
    local used = (number - number % 10) / 10
    if used > 9999999 then
      used = used % 10000000
    end
    local left = units_N - cost_N - used
    if left >= 0 and used + cost_N <= 9999999 then
      call('INCRBY', key_N, cost_N == 1 and '10' or string.format('%d0', cost_N))
      return left * span_N + ttl - span_N - 1
    end
  end
elseif ttl == -2 and cost_N <= units_N and cost_N <= 9999999 then
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  local seconds = time[1] + 0
  local digit, starts, ends, next = string.match(terms_text_N, '^(%d)(%d+):(%d+):(%d+):')
  starts, ends, next = starts + 0, ends + 0, next + 0
  if seconds >= ends then
    digit, starts, ends = (digit + 1) % 10, ends, next
  end
  if seconds >= starts and seconds < ends then
    call('SET', key_N, string.format('%d', cost_N * 10 + digit), 'PXAT', string.format('%d', ends * 1000 + span_N))
    return { units_N - cost_N, now }
  end
end
-- Missing, or of before a step of the clock: a charge puts it right.
if ttl == -1 or ttl > 2 * span_N then
  odd_ttl = ttl
end

-- @refund
local from, to = ahead_N and end_N or start_N, ahead_N and next_N or end_N
  -- @rich
local state = rich_N
if charged_at then
  local at = (charged_at - charged_at % 1000) / 1000
  if at <= state[4] or at < from or at >= to then
    return 0
  end
end
local back = math.min(amount, state[2])
if back > 0 then
  local over = math.min(back, state[8])
  local spent = math.min(back - over, state[6])
  state[9] = math.max(state[9], state[2])
  state[2], state[8], state[6], state[5] = state[2] - back, state[8] - over, state[6] - spent, state[5] + spent
  -- @write
end
return back

-- @beyond
  -- @rich
local state = rich_N
local fits = counts_N == '1' and 4294967295 - state[2] or math.max(0, quota_left(state, units_N, most_N)) + state[5]
local first = math.min(amount, fits)
state = quota_charged(state, units_N, most_N, counts_N, first)
if counts_N ~= '1' then
  state[2] = state[2] + math.min(amount - first, room_beyond(units_N, state[2] - state[6]), 4294967295 - state[2])
end
  -- @write

-- @reset
-- DEL comes first: a server that is out of memory refuses a script at a first write that needs some.
call('DEL', key_N)
  -- @rich
local state = rich_N
state[2], state[6], state[8], state[9] = 0, 0, 0, 0
state[4] = math.max(state[4], ahead_N and end_N or now_ms)
  -- @write

-- @credit
  -- @rich
local state = rich_N
if amount > 0 then
  local field = lasts and 5 or 7
  state[field] = math.min(state[field] + amount, 4294967295)
end
local told = { 1, unpack(state) }
if amount > 0 then
  -- @write
end
return told
