-- Sliding-window counter; see src/algorithms/sliding-window-counter.ts.
-- @kind counter units span
--
-- One number, (previous * 10^7 + current) * 10 + window % 10: 300000052 is 3 units before and 5 now, in a window whose
-- number ends in 2. A charge is INCRBY, the cheapest write there is. It expires when its window has been the previous one,
-- so that one digit of the window's number is enough. What the number cannot say is a text,
-- `previous:current:window start in ms:reset in ms`: more than 9,999,999 units, and a reset for as long as a charge from
-- before it could still be given back. A charge writes whichever form fits.
-- `span` is the window in milliseconds.

-- @prepare
local elapsed_N = now_ms % span_N
local window_N = (now_ms - elapsed_N) / span_N
local digit_N = window_N % 10

-- @load
if reads_ttl then
  odd_ttl = wrong_ttl(key_N, span_N)
end
local value_N = call('GET', key_N)
local current_N, previous_N, overlap_N, reset_N, odd_N, in_place_N = 0, 0, span_N - elapsed_N, 0, false, false
if value_N then
  -- A number has at most fifteen digits, and a text more. What is not a number raises an error here; what INCRBY does not take for
  -- one is told before anything is charged, and with only one limit by INCRBY itself.
  local number = #value_N < 16 and value_N + 0
  if number and number % 10 == digit_N and number >= 0 and not odd_ttl and (is_only_limit or find(value_N, '^%d+$') and not find(value_N, '^0.')) then
    current_N, in_place_N = (number - digit_N) / 10, true
    if current_N > 9999999 then
      local both = current_N
      current_N = both % 10000000
      previous_N = (both - current_N) / 10000000
    end
  else
    -- Read as a text: the start of its window says whether it is this one, the one before, or one after a step of the clock.
    local start, before, newest, reset = window_N * span_N, nil, nil, nil
    if number and find(value_N, '^%d+$') and not find(value_N, '^0.') then
      local tag = number % 10
      local both = (number - tag) / 10
      newest, reset, in_place_N = both % 10000000, 0, true
      before = (both - newest) / 10000000
      local ahead = (tag - digit_N + 1) % 10 - 1
      if odd_ttl and odd_ttl > 0 then
        -- It says by how much the clock stepped back.
        start = floor((now_ms + odd_ttl) / span_N + 0.5) * span_N - 2 * span_N
      elseif ahead > 1 then
        -- From before a step of the clock, and too far from now to count.
        start = -9 * span_N
      else
        start = start + ahead * span_N
      end
    else
      local _, _, a, b, c, d = find(value_N, '^(%d+):(%d+):(%d+):(%d+)$')
      if not a or #value_N > 60 then
        error(BAD_STATE, 0)
      end
      before, newest, start, reset = a + 0, b + 0, c + 0, d + 0
    end
    local this = window_N * span_N
    reset_N = reset
    if start == this then
      current_N, previous_N = newest, before
    elseif start + span_N == this then
      previous_N, in_place_N = newest, false
    elseif start > now_ms and start - now_ms <= span_N - ceil(span_N / units_N) then
      -- The clock stepped back: time waits at the start of that window.
      current_N, previous_N, overlap_N, odd_N = newest, before, span_N, true
    else
      in_place_N = false
    end
  end
end
local left_N = units_N - cost_N - current_N
if previous_N > 0 then
  -- What still counts of the window before, rounded down.
  local faded = previous_N * overlap_N
  if faded <= 9007199254740991 then
    faded = faded / span_N
    left_N = left_N - (faded - faded % 1)
  else
    -- As src/algorithms/exact-fraction.ts does it: divided digit by digit, because the product is not exact.
    local quotient, remainder, rest, place = 0, 0, previous_N, 268435456
    while place >= 1 do
      local digit = (rest - rest % place) / place
      rest = rest - digit * place
      local step = remainder * 128 + digit * overlap_N
      local part = (step - step % span_N) / span_N
      quotient, remainder, place = quotient * 128 + part, step - part * span_N, place / 128
    end
    left_N = left_N - quotient
  end
end

-- @write
-- In: `previous`, `current` and the number of their `window`.
local start, value = window * span_N, nil
if previous <= 9999999 and current <= 9999999 and (reset_N == 0 or reset_N < start - span_N) then
  value = format('%d', (previous * 10000000 + current) * 10 + window % 10)
else
  value = format('%d:%d:%d:%d', previous, current, start, reset_N)
end
call('SET', key_N, value, 'PXAT', format('%d', start + 2 * span_N + shift_ms))

-- @charge
if in_place_N and current_N + cost_N <= 9999999 and reset_N == 0 and not odd_ttl then
  call('INCRBY', key_N, cost_N == 1 and '10' or format('%d0', cost_N))
else
  local previous, current, window = previous_N, current_N + cost_N, odd_N and window_N + 1 or window_N
  -- @write
end

-- @state previous_N, current_N, (odd_N and window_N + 1 or window_N) * span_N, reset_N

-- @deny
if value_N and not find(value_N, '^[%d:]+$') then
  error(BAD_STATE, 0)
end


-- @alone
-- The time to live of the only key is the clock: it says whether the key exists, its window, and where in it now is.
-- One integer is the whole reply: what is left, the time to live, and the digit of the window. A new key takes its window from
-- the server's clock. Everything else goes on below. With a second argument the server's clock is asked for, and none of this is done.
local ttl = call('PTTL', key_N)
if ttl > span_N and ttl <= 2 * span_N then
  local value = call('GET', key_N)
  local number = #value < 16 and value + 0
  if number and number >= 0 then
    local digit = number % 10
    local current = (number - digit) / 10
    local left = units_N - cost_N - current
    if current > 9999999 then
      local both = current
      current = both % 10000000
      local faded = (both - current) / 10000000 * (ttl - span_N) / span_N
      left = units_N - cost_N - current - (faded - faded % 1)
    end
    if left >= 0 and current + cost_N <= 9999999 then
      call('INCRBY', key_N, cost_N == 1 and '10' or string.format('%d0', cost_N))
      return (left * 2 * span_N + ttl - 1) * 10 + digit
    end
  end
elseif ttl == -2 and cost_N <= units_N and cost_N <= 9999999 then
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  local now_ms = (now - now % 1000) / 1000
  local window = (now_ms - now_ms % span_N) / span_N
  local value, ends = string.format('%d', cost_N * 10 + window % 10), string.format('%d', (window + 2) * span_N)
  call('SET', key_N, value, 'PXAT', ends)
  return { units_N - cost_N, now }
end
-- Missing, or of before a step of the clock: a charge puts it right.
if ttl == -1 or ttl > 2 * span_N then
  odd_ttl = ttl
end

-- @refund
if charged_at and (charged_at - charged_at % 1000) / 1000 <= reset_N then
  return 0
end
local previous, current, window, left = previous_N, current_N, odd_N and window_N + 1 or window_N, amount
local charged = charged_at and (charged_at - charged_at % (span_N * 1000)) / (span_N * 1000)
if not charged or charged == window - 1 then
  local back = math.min(left, previous)
  previous, left = previous - back, left - back
end
if not charged or charged == window then
  local back = math.min(left, current)
  current, left = current - back, left - back
end
if left < amount then
  -- @write
end
return amount - left

-- @beyond
local used = units_N - left_N
local more = math.min(amount, room_beyond(units_N, used))
if more > 0 then
  local previous, current, window = previous_N, current_N + more, odd_N and window_N + 1 or window_N
  -- @write
end

-- @reset
-- DEL comes first: a server that is out of memory refuses a script at a first write that needs some.
call('DEL', key_N)
local window = odd_N and window_N + 1 or window_N
local reset = math.max(reset_N, odd_N and window * span_N or now_ms)
call('SET', key_N, format('0:0:0:%d', reset), 'PXAT', format('%d', (window + 2) * span_N + shift_ms))
