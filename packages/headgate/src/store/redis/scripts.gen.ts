// Built by scripts/build-lua.mjs from lua/. Do not edit: change the Lua and run `npm run lua`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

/** The sections of an algorithm's Lua file of which straight-line scripts are made. */
export interface Kind {
  /** The names of its numbers; those that end in `_text` are texts. */
  readonly numbers: readonly string[]
  /** The expressions of the state that a denial tells. */
  readonly state: string
  readonly functions: string
  readonly alone: string
  readonly prepare: string
  readonly load: string
  readonly charge: string
  readonly deny: string
}

export const functionLibrary = 'headgate_e134dd5f'

/** The commands that the scripts use. */
export const commands: readonly string[] = 'del exists get hdel hget hgetall hmget hset incrby lpush lrange ltrim pexpire pttl set time xadd xrange xtrim zadd zcard zcount zrange zrangebyscore zrank zrem zremrangebyscore zrevrangebyscore zscore'.split(' ')

const ban_load = `local fields_N = call('HMGET', key_N, 'level', 'strikes', 'since')
local level_N, strikes_N, since_N, left_N, odd_N = 0, 0, 0, units_N, false
if fields_N[1] then
level_N, strikes_N, since_N = fields_N[1] + 0, (fields_N[2] or -1) + 0, (fields_N[3] or -1) + 0
if not (level_N >= 0 and strikes_N >= 0 and since_N >= 0) then
error(BAD_STATE, 0)
end
odd_N = true
if is_banned(level_N, strikes_N, since_N, within_N, spans_text_N) then
left_N = -1
end
elseif call('EXISTS', key_N) == 1 then
error(BAD_STATE, 0)
end`

const ban_functions = `local function span_of(text, level)
local span, longest, count = 0, 0, 0
for digits in string.gmatch(text, '%d+') do
count, longest = count + 1, digits + 0
if count <= level then
span = longest
end
end
return span, longest, count
end
local function ends_of(level, strikes, since, within, text)
local span, longest = span_of(text, strikes == 0 and level or 0)
local ends = since + span
return ends, now >= ends + longest + within or since - now > longest
end
local function is_banned(level, strikes, since, within, text)
if level == 0 or strikes > 0 then
return false
end
local ends, is_forgotten = ends_of(level, strikes, since, within, text)
return ends > now and not is_forgotten
end`

const ban_beyond = `if left_N >= 0 then
local _, is_forgotten = ends_of(level_N, strikes_N, since_N, within_N, spans_text_N)
local level, before, since = level_N, strikes_N, since_N
if is_forgotten then
level, before, since = 0, 0, 0
elseif now >= since + within_N then
before = 0
end
if before == 0 then
since = math.max(now, since)
end
local strikes, began = before + amount, 0
local _, longest, count = span_of(spans_text_N, 0)
if strikes >= units_N then
level, strikes, since = math.min(level + 1, count), 0, math.max(now, since)
began = level
end
local ends = ends_of(level, strikes, since, within_N, spans_text_N)
call('HSET', key_N, 'level', format('%d', level), 'strikes', format('%d', strikes), 'since', format('%016d', since))
call('PEXPIRE', key_N, format('%d', ceil((ends + longest + within_N - now) / 1000) + grace_ms))
if began > 0 then
return began
end
end`

const ban_reset = `call('DEL', key_N)`

const permits_prepare = `local from_N, to_N = '(' .. format('%d', now), format('%d', now + 2 * span_N)`

const permits_load = `local first_N = call('ZRANGE', key_N, '0', '0')[1]
local used_N, last_N, frees_N, taken_N, reset_us_N, is_dead_N, odd_N = 0, now, -1, -1, 0, false, true
if first_N then
local reset = string.match(first_N, '^reset:(%d+)$')
if not (reset or taken_of(first_N)) then
error(BAD_STATE, 0)
end
reset_us_N = (reset or 0) + 0
used_N = call('ZCOUNT', key_N, from_N, to_N)
is_dead_N = call('ZCARD', key_N) - used_N > (reset and 1 or 0)
if used_N > 0 then
last_N = call('ZREVRANGEBYSCORE', key_N, to_N, from_N, 'WITHSCORES', 'LIMIT', '0', '1')[2] + 0
end
end
local left_N = units_N - used_N - cost_N`

const permits_charge = `if is_dead_N then
drop_dead(key_N, to_N)
end
taken_N = math.max(now, reset_us_N + 1)
while call('ZSCORE', key_N, permit_member(taken_N, 0)) do
taken_N = taken_N + 1
end
hold(key_N, taken_N, cost_N, span_N)`

const permits_deny = `if left_N < 0 and cost_N <= units_N then
local permit = call('ZRANGEBYSCORE', key_N, from_N, to_N, 'WITHSCORES', 'LIMIT', format('%d', -left_N - 1), '1')
frees_N = (permit[2] or -1) + 0
end`

const permits_functions = `local function permit_member(taken, unit)
return unit == 0 and format('%016d', taken) or format('%016d.%d', taken, unit)
end
local function taken_of(member)
local sixteen = string.rep('%d', 16)
return tonumber(string.match(member, '^(' .. sixteen .. ')$') or string.match(member, '^(' .. sixteen .. ')%.%d+$'))
end
local function drop_dead(key, to)
call('ZREMRANGEBYSCORE', key, '0', format('%d', now))
call('ZREMRANGEBYSCORE', key, '(' .. to, '+inf')
end
local function hold(key, taken, units, span)
local expires = format('%d', now + span)
for unit = 0, units - 1 do
call('ZADD', key, expires, permit_member(taken, unit))
end
call('PEXPIRE', key, format('%d', ceil(2 * span / 1000) + grace_ms))
end
local function count_held(key, taken)
local held = 0
while call('ZSCORE', key, permit_member(taken, held)) do
held = held + 1
end
return held
end
local function give_back(key, taken, units)
local held = count_held(key, taken)
local back = math.min(units, held)
for unit = held - back, held - 1 do
call('ZREM', key, permit_member(taken, unit))
end
return back
end`

const permits_refund = `if charged_at then
local expires = tonumber(call('ZSCORE', key_N, permit_member(charged_at, 0)) or nil)
local is_live = expires and expires > now and expires <= now + 2 * span_N
return is_live and give_back(key_N, charged_at, amount) or 0
end
local left = math.min(amount, used_N)
local back = left
while left > 0 do
local first = call('ZRANGEBYSCORE', key_N, from_N, to_N, 'LIMIT', '0', '1')
local given = give_back(key_N, taken_of(first[1]) or error(BAD_STATE, 0), left)
if given == 0 then
error(BAD_STATE, 0)
end
left = left - given
end
return back`

const permits_renew = `if is_dead_N then
drop_dead(key_N, to_N)
end
local held = count_held(key_N, charged_at)
if held == 0 and used_N + amount > units_N then
return 0
end
hold(key_N, charged_at, held > 0 and held or amount, span_N)
return 1`

const permits_reset = `local latest = reset_us_N
for _, member in ipairs(call('ZRANGE', key_N, '0', '-1')) do
latest = math.max(latest, taken_of(member) or 0)
end
call('DEL', key_N)
call('ZADD', key_N, '-1', 'reset:' .. format('%d', latest))
call('PEXPIRE', key_N, format('%d', ceil(2 * span_N / 1000) + grace_ms))`

const quota_period = `local digit_N, start_N, end_N, next_N, after_N, most_N, counts_N = string.match(terms_text_N, '^(%d)(%d+):(%d+):(%d+):(%d+):?(%d*):?(%d*)$')
start_N, end_N, next_N = start_N * 1000, end_N * 1000, next_N * 1000
if now_ms >= end_N then
digit_N, start_N, end_N, next_N = (digit_N + 1) % 10, end_N, next_N, after_N * 1000
end
if now_ms < start_N or now_ms >= end_N then
error('HEADGATE_PERIOD ' .. string.format('%d', now), 0)
end`

const quota_current = `${quota_period}`

const quota_prepare = `${quota_period}
local is_plain_N = most_N == ''
digit_N, most_N = digit_N + 0, is_plain_N and 0 or most_N + 0`

const quota_rich = `rich_N = rich_N or { previous_N, used_N, ahead_N and next_N or end_N, 0, 0, 0, 0, 0, 0, 0, 0 }`

const quota_load = `if reads_ttl then
odd_ttl = wrong_ttl(key_N, span_N)
end
local value_N = call('GET', key_N)
local used_N, previous_N, odd_N, ahead_N, in_place_N, rich_N = 0, 0, false, false, false, nil
if value_N then
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
later = 2
end
if later == 0 or later == 1 then
used_N, previous_N, in_place_N, ahead_N = newest, before, true, later == 1
elseif later == -1 then
previous_N = newest
end
else
rich_N, ahead_N = quota_state(value_N, start_N, end_N, next_N)
end
end
if ahead_N or not is_plain_N then
${quota_rich}
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
end`

const quota_write = `quota_write(key_N, state, ahead_N and (digit_N + 1) % 10 or digit_N, span_N, shift_ms)`

const quota_charge = `if rich_N then
local state = quota_charged(rich_N, units_N, most_N, counts_N, cost_N)
${quota_write}
elseif in_place_N and used_N + cost_N <= 9999999 and not odd_ttl then
call('INCRBY', key_N, cost_N == 1 and '10' or format('%d0', cost_N))
else
used_N = used_N + cost_N
${quota_rich}
local state = rich_N
${quota_write}
end`

const quota_deny = `if value_N and not find(value_N, '^[%d:]+$') then
error(BAD_STATE, 0)
end
${quota_rich}`

const quota_functions = `local function quota_state(value, starts, ends, next)
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
local lasts = (is_number or state[5] == '0') and span or 3155760000000
call('SET', key, value, 'PXAT', format('%d', state[3] + lasts + shift))
end`

const quota_alone = `local ttl = call('PTTL', key_N)
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
if ttl == -1 or ttl > 2 * span_N then
odd_ttl = ttl
end`

const quota_refund = `local from, to = ahead_N and end_N or start_N, ahead_N and next_N or end_N
${quota_rich}
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
${quota_write}
end
return back`

const quota_beyond = `${quota_rich}
local state = rich_N
local fits = counts_N == '1' and 4294967295 - state[2] or math.max(0, quota_left(state, units_N, most_N)) + state[5]
local first = math.min(amount, fits)
state = quota_charged(state, units_N, most_N, counts_N, first)
if counts_N ~= '1' then
state[2] = state[2] + math.min(amount - first, room_beyond(units_N, state[2] - state[6]), 4294967295 - state[2])
end
${quota_write}`

const quota_reset = `call('DEL', key_N)
${quota_rich}
local state = rich_N
state[2], state[6], state[8], state[9] = 0, 0, 0, 0
state[4] = math.max(state[4], ahead_N and end_N or now_ms)
${quota_write}`

const quota_credit = `${quota_rich}
local state = rich_N
if amount > 0 then
local field = lasts and 5 or 7
state[field] = math.min(state[field] + amount, 4294967295)
end
local told = { 1, unpack(state) }
if amount > 0 then
${quota_write}
end
return told`

const parts_prepare = `local part_N = ceil(span_N / parts_N)
local part_start_N = now_ms - now_ms % part_N`

const parts_load = `local fields_N = call('HMGET', key_N, 'start', 'counts')
local start_N, counts_N, live_N, passed_N, used_N, newest_N, odd_N = part_start_N, nil, 0, parts_N + 1, 0, 0, false
local counts_text_N = fields_N[2] or ''
if fields_N[1] then
local stored = #fields_N[1] <= 16 and find(fields_N[1], '^%d+$') and fields_N[1] + 0
local is_read = stored and find(counts_text_N, '^%d[%d,]*$')
if is_read then
is_read, counts_N = pcall(cjson.decode, '[' .. counts_text_N .. ']')
end
if not is_read then
error(BAD_STATE, 0)
end
if stored - now_ms <= 2 * span_N - (parts_N + 1) * part_N then
if stored > now_ms then
start_N, odd_N = stored - stored % part_N, true
end
passed_N = (start_N - stored) / part_N
if passed_N <= parts_N then
live_N = math.min(parts_N + 1 - passed_N, #counts_N)
for index = 1, live_N do
used_N = used_N + counts_N[index]
end
if passed_N == 0 then
newest_N = counts_N[1]
end
if used_N > 9007199254740991 then
error(BAD_STATE, 0)
end
end
end
elseif call('EXISTS', key_N) == 1 then
error(BAD_STATE, 0)
end
local left_N = units_N - used_N - cost_N`

const parts_charge = `write_parts(key_N, start_N, newest_N + cost_N, counts_N, counts_text_N, live_N, passed_N, span_N)`

const parts_functions = `local function write_parts(key, start, newest, counts, counts_text, live, passed, span)
local text = format('%d', newest)
if passed > 0 then
text = live == 0 and text or text .. string.rep(',0', passed - 1) .. ',' .. table.concat(counts, ',', 1, live)
elseif live > 1 then
text = text .. string.sub(counts_text, find(counts_text, ',', 1, true), -1)
end
call('HSET', key, 'start', format('%d', start), 'counts', text)
if passed > 0 then
call('PEXPIRE', key, format('%d', math.max(0, start - now_ms) + 2 * span + grace_ms))
end
end`

const parts_refund = `local charged_ms = charged_at and (charged_at - charged_at % 1000) / 1000
if charged_ms and charged_ms <= (tonumber(call('HGET', key_N, 'reset') or nil) or 0) then
return 0
end
local charged_age = charged_ms and (start_N - (charged_ms - charged_ms % part_N)) / part_N
local left = amount
for index = live_N, 1, -1 do
if not charged_at or charged_age == index - 1 + passed_N then
local back = math.min(left, counts_N[index])
counts_N[index] = counts_N[index] - back
left = left - back
end
end
if left < amount then
newest_N = passed_N == 0 and counts_N[1] or 0
write_parts(key_N, start_N, newest_N, counts_N, table.concat(counts_N, ',', 1, live_N), live_N, passed_N, span_N)
end
return amount - left`

const parts_beyond = `local more = math.min(amount, room_beyond(units_N, used_N))
if more > 0 then
write_parts(key_N, start_N, newest_N + more, counts_N, counts_text_N, live_N, passed_N, span_N)
end`

const parts_reset = `local reset = math.max(odd_N and start_N or now_ms, tonumber(call('HGET', key_N, 'reset') or nil) or 0)
call('DEL', key_N)
call('HSET', key_N, 'reset', format('%d', reset), 'start', '0', 'counts', '0')
call('PEXPIRE', key_N, format('%d', math.max(0, start_N - now_ms) + 2 * span_N + grace_ms))`

const counter_prepare = `local elapsed_N = now_ms % span_N
local window_N = (now_ms - elapsed_N) / span_N
local digit_N = window_N % 10`

const counter_load = `if reads_ttl then
odd_ttl = wrong_ttl(key_N, span_N)
end
local value_N = call('GET', key_N)
local current_N, previous_N, overlap_N, reset_N, odd_N, in_place_N = 0, 0, span_N - elapsed_N, 0, false, false
if value_N then
local number = #value_N < 16 and value_N + 0
if number and number % 10 == digit_N and number >= 0 and not odd_ttl and (is_only_limit or find(value_N, '^%d+$') and not find(value_N, '^0.')) then
current_N, in_place_N = (number - digit_N) / 10, true
if current_N > 9999999 then
local both = current_N
current_N = both % 10000000
previous_N = (both - current_N) / 10000000
end
else
local start, before, newest, reset = window_N * span_N, nil, nil, nil
if number and find(value_N, '^%d+$') and not find(value_N, '^0.') then
local tag = number % 10
local both = (number - tag) / 10
newest, reset, in_place_N = both % 10000000, 0, true
before = (both - newest) / 10000000
local ahead = (tag - digit_N + 1) % 10 - 1
if odd_ttl and odd_ttl > 0 then
start = floor((now_ms + odd_ttl) / span_N + 0.5) * span_N - 2 * span_N
elseif ahead > 1 then
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
current_N, previous_N, overlap_N, odd_N = newest, before, span_N, true
else
in_place_N = false
end
end
end
local left_N = units_N - cost_N - current_N
if previous_N > 0 then
local faded = previous_N * overlap_N
if faded <= 9007199254740991 then
faded = faded / span_N
left_N = left_N - (faded - faded % 1)
else
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
end`

const counter_write = `local start, value = window * span_N, nil
if previous <= 9999999 and current <= 9999999 and (reset_N == 0 or reset_N < start - span_N) then
value = format('%d', (previous * 10000000 + current) * 10 + window % 10)
else
value = format('%d:%d:%d:%d', previous, current, start, reset_N)
end
call('SET', key_N, value, 'PXAT', format('%d', start + 2 * span_N + shift_ms))`

const counter_charge = `if in_place_N and current_N + cost_N <= 9999999 and reset_N == 0 and not odd_ttl then
call('INCRBY', key_N, cost_N == 1 and '10' or format('%d0', cost_N))
else
local previous, current, window = previous_N, current_N + cost_N, odd_N and window_N + 1 or window_N
${counter_write}
end`

const counter_deny = `if value_N and not find(value_N, '^[%d:]+$') then
error(BAD_STATE, 0)
end`

const counter_alone = `local ttl = call('PTTL', key_N)
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
if ttl == -1 or ttl > 2 * span_N then
odd_ttl = ttl
end`

const counter_refund = `if charged_at and (charged_at - charged_at % 1000) / 1000 <= reset_N then
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
${counter_write}
end
return amount - left`

const counter_beyond = `local used = units_N - left_N
local more = math.min(amount, room_beyond(units_N, used))
if more > 0 then
local previous, current, window = previous_N, current_N + more, odd_N and window_N + 1 or window_N
${counter_write}
end`

const counter_reset = `call('DEL', key_N)
local window = odd_N and window_N + 1 or window_N
local reset = math.max(reset_N, odd_N and window * span_N or now_ms)
call('SET', key_N, format('0:0:0:%d', reset), 'PXAT', format('%d', (window + 2) * span_N + shift_ms))`

const log_prepare = `local keep_us_N = span_N + ceil(span_N / 8)
local stretch_N = now - now % ceil(span_N / 8)`

const log_load = `local newest_N = call('ZRANGE', key_N, '-1', '-1')[1]
local total_N, used_N, base_N, base_us_N, older_N, last_N, at_N, odd_N, is_former_N, leaves_N =
0, 0, 0, nil, false, 0, now, false, false, -1
if newest_N then
total_N, last_N = read_entry(newest_N)
if last_N > now + span_N then
total_N, is_former_N = 0, true
else
if last_N > now then
at_N, odd_N = last_N, true
end
if last_N <= at_N - span_N then
base_N, base_us_N, older_N = total_N, last_N, true
else
local oldest = call('ZRANGE', key_N, '0', '1')
local edge = at_N - span_N
local total, time_us = read_entry(oldest[1])
if time_us <= edge then
local _, next_us = read_entry(oldest[2])
if next_us <= edge then
older_N = true
local gone = call('ZCOUNT', key_N, '-inf', format('%d', edge))
total, time_us = read_entry(call('ZRANGE', key_N, gone - 1, gone - 1)[1])
end
base_N, base_us_N = total, time_us
end
end
used_N = total_N - base_N
end
end
local left_N = units_N - used_N - cost_N`

const log_charge = `if is_former_N then
call('ZADD', key_N, '0', '0')
call('DEL', key_N)
elseif total_N + cost_N > 9999999999999 then
total_N, older_N, is_former_N = restart_totals(key_N, at_N - span_N, base_N, used_N), false, true
end
local at_text = odd_N and format('%016d', at_N) or now_text
call('ZADD', key_N, at_text, format('%013d:', total_N + cost_N) .. at_text)
if older_N then
call('ZREMRANGEBYSCORE', key_N, '-inf', '(' .. format('%d', base_us_N))
end
if odd_N or is_former_N or last_N < stretch_N then
call('PEXPIRE', key_N, format('%d', ceil((at_N - now + keep_us_N) / 1000) + grace_ms))
end`

const log_deny = `if left_N < 0 and cost_N <= units_N then
leaves_N = leaves_at(key_N, at_N - span_N, total_N + cost_N - units_N)
end`

const log_functions = `local function read_entry(member)
if #member ~= 30 or string.byte(member, 14) ~= 58 then
error(BAD_STATE, 0)
end
return string.sub(member, 1, 13) + 0, string.sub(member, 15) + 0
end
local function add_entry(key, total, time_us)
local time_text = format('%016d', time_us)
call('ZADD', key, time_text, format('%013d:', total) .. time_text)
end
local function restart_totals(key, edge, base, used)
local entries = call('ZRANGEBYSCORE', key, '(' .. format('%d', edge), '+inf')
call('ZADD', key, '0', '0')
call('DEL', key)
for _, member in ipairs(entries) do
local total, time_us = read_entry(member)
add_entry(key, total - base, time_us)
end
return used
end
local function leaves_at(key, edge, needed)
local low = call('ZCOUNT', key, '-inf', format('%d', edge))
local total, time_us = read_entry(call('ZRANGE', key, low, low)[1])
if total >= needed then
return time_us
end
local high = call('ZCARD', key) - 1
low = low + 1
while low < high do
local middle = floor((low + high) / 2)
if read_entry(call('ZRANGE', key, middle, middle)[1]) >= needed then
high = middle
else
low = middle + 1
end
end
total, time_us = read_entry(call('ZRANGE', key, low, low)[1])
return time_us
end`

const log_refund = `if used_N == 0 then
return 0
end
local edge = at_N - span_N
if charged_at and charged_at <= edge then
return 0
end
local from = charged_at and format('%d', charged_at) or '(' .. format('%d', edge)
local entries = call('ZRANGEBYSCORE', key_N, from, '+inf')
if #entries == 0 then
return 0
end
local first_total, first_us = read_entry(entries[1])
if charged_at and first_us ~= charged_at then
return 0
end
local rank = call('ZRANK', key_N, entries[1])
local before = rank > 0 and read_entry(call('ZRANGE', key_N, rank - 1, rank - 1)[1]) or 0
if charged_at and first_total == before then
return 0
end
local left, kept_total, original = amount, before, before
call('ZREMRANGEBYSCORE', key_N, from, '+inf')
if base_us_N then
call('ZREMRANGEBYSCORE', key_N, '-inf', format('%d', base_us_N))
add_entry(key_N, base_N, 0)
end
for _, member in ipairs(entries) do
local total, time_us = read_entry(member)
local cost = total - original
local back = 0
if not charged_at or time_us == charged_at then
back = math.min(left, cost)
end
original = total
left = left - back
if back < cost or cost == 0 then
kept_total = kept_total + cost - back
add_entry(key_N, kept_total, time_us)
end
end
call('PEXPIRE', key_N, format('%d', ceil((math.max(0, last_N - now) + keep_us_N) / 1000) + grace_ms))
return amount - left`

const log_beyond = `local more = math.min(amount, room_beyond(units_N, used_N))
if more > 0 then
cost_N = more
${log_charge}
end`

const log_reset = `call('DEL', key_N)
if not is_former_N and newest_N and last_N > at_N - span_N then
add_entry(key_N, 0, at_N)
call('PEXPIRE', key_N, format('%d', ceil((at_N - now + keep_us_N) / 1000) + grace_ms))
end`

const bucket_prepare = `local full_N = units_N * 1000000
local fill_us_N = 1000000 * ceil(units_N / rate_N)
local stretch_N = now - now % fill_us_N`

const bucket_load = `local fields_N = call('HMGET', key_N, 'tokens', 'lastRefill', 'capacity')
local missing_N, stored_N, written_N, at_N, odd_N, is_kept_N = 0, 0, 0, now, false, false
if fields_N[1] then
local tokens, text, capacity = fields_N[1], fields_N[2], units_N
if fields_N[3] ~= capacity_text_N then
local _, _, before = find(fields_N[3] or '', '^(%d+)/[%d.e+-]+$')
capacity = (before or -1) + 0
end
if not text or #text ~= 16 or string.byte(tokens, -7) ~= 46 then
error(BAD_STATE, 0)
end
written_N = text + 0
local left = tokens * 1000000 + 0.5
left = left - left % 1
if #tokens > 15 then
left = string.sub(tokens, 1, -8) * 1000000 + string.sub(tokens, -6)
end
stored_N = capacity * 1000000 - left
if not (stored_N >= 0 and stored_N <= capacity * 1000000 and written_N >= 0) then
error(BAD_STATE, 0)
end
missing_N = stored_N < full_N and stored_N or full_N
if written_N <= now then
is_kept_N = written_N >= stretch_N and fields_N[3] == capacity_text_N
local refilled = (now - written_N) * rate_N
missing_N = missing_N - (refilled - refilled % 1)
if missing_N < 0 then
missing_N = 0
end
elseif written_N - now <= (units_N - 1) * 1000000 / rate_N then
at_N, odd_N = written_N, true
else
missing_N = 0
end
elseif call('EXISTS', key_N) == 1 then
error(BAD_STATE, 0)
end
local left_N = full_N - missing_N - cost_N * 1000000`

const bucket_write = `local part = left % 1000000
local tokens = format('%d.%06d', (left - part) / 1000000, part)
call('HSET', key_N, 'tokens', tokens, 'lastRefill', format('%016d', at), 'capacity', capacity_text_N)
call('PEXPIRE', key_N, format('%d', ceil((2 * fill_us_N + at - now) / 1000) + grace_ms))`

const bucket_charge = `if is_kept_N then
local part = left_N % 1000000
call('HSET', key_N, 'tokens', format('%d.%06d', (left_N - part) / 1000000, part), 'lastRefill', now_text)
else
local left, at = left_N, at_N
${bucket_write}
end`

const bucket_functions = `local function refill_us(micro, rate)
local elapsed = ceil(micro / rate)
if not (elapsed < 4503599627370496) then
return elapsed
end
while floor(elapsed * rate) < micro do
elapsed = elapsed + 1
end
while elapsed > 0 and floor((elapsed - 1) * rate) >= micro do
elapsed = elapsed - 1
end
return elapsed
end`

const bucket_refund = `if charged_at then
local reset = call('HGET', key_N, 'reset')
if charged_at <= (tonumber(reset or nil) or 0) or now - charged_at >= 2 * fill_us_N then
return 0
end
end
if missing_N > 0 and stored_N > full_N then
return 0
end
local refilled = math.max(0, now - held_since) * rate_N
local back = math.min(math.max(0, amount - ceil(refilled / 1000000)) * 1000000, missing_N)
if back > 0 then
local left, at = full_N - missing_N + back, at_N
${bucket_write}
end
return ceil(back / 1000000)`

const bucket_beyond = `if units_N > 0 then
local missing, at = missing_N + amount * 1000000, at_N
if missing > full_N then
local owed_us = at - now + refill_us(missing - full_N, rate_N)
at = now + math.min(floor((units_N - 1) * 1000000 / rate_N), owed_us)
missing = full_N
end
local left = full_N - missing
${bucket_write}
end`

const bucket_reset = `local reset = math.max(at_N, tonumber(call('HGET', key_N, 'reset') or nil) or 0)
call('DEL', key_N)
local tokens, never = format('%d.000000', units_N), format('%016d', 0)
call('HSET', key_N, 'reset', format('%d', reset), 'tokens', tokens, 'lastRefill', never, 'capacity', capacity_text_N)
call('PEXPIRE', key_N, format('%d', ceil((2 * fill_us_N + at_N - now) / 1000) + grace_ms))`

export const testClock: string = `now, grace_ms, shift_ms = clock + 0, 600000, 4398046511104
call = function(command, key, ...)
if command == 'GET' then
local ends_ms = redis.call('PEXPIRETIME', key)
if ends_ms >= 0 and (ends_ms - shift_ms) * 1000 <= now then
return false
end
end
return redis.call(command, key, ...)
end`

const timed = `local call, find, format, ceil, floor = redis.call, string.find, string.format, math.ceil, math.floor
local clock, now, grace_ms, shift_ms = ARGV[1], 0, 0, 0
if clock == '' then
local time = call('TIME')
now = time[1] * 1000000 + time[2]
else
${testClock}
end
local now_ms = (now - now % 1000) / 1000
local now_text = format('%016d', now)
local function expire_after(key, keep_us)
call('PEXPIRE', key, format('%d', ceil(keep_us / 1000) + grace_ms))
end
local function text_of(number)
return format('%d', number)
end`

export const problem: string = `local function problem_of_key(problem)
local text = type(problem) == 'table' and problem.err or problem
for _, words in ipairs({ 'HEADGATE_BAD_STATE', 'WRONGTYPE', 'not an integer', 'attempt to ' }) do
if string.find(text, words, 1, true) then
return text
end
end
end
local function failed(problem)
return type(problem) == 'table' and problem or redis.error_reply(problem)
end`

const state = `${timed}
local BAD_STATE, is_only_limit = 'HEADGATE_BAD_STATE the key holds something Headgate did not write', false
local reads_ttl, odd_ttl = clock == '', nil
local function room_beyond(units, used)
return math.max(0, math.min(2 * units, 4294967295) - used)
end
local function wrong_ttl(key, span)
local ttl = call('PTTL', key)
return (ttl == -1 or ttl > 2 * span) and ttl or nil
end
${ban_functions}
${permits_functions}
${quota_functions}
${parts_functions}
${log_functions}
${bucket_functions}
${problem}
local function current_quota(units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
${quota_current}
end
local currents = { quota = current_quota }
local function expect_current(first, stride, skip)
for at = first, #ARGV, stride do
local expect = currents[ARGV[at]]
if expect then
expect(ARGV[at + skip], ARGV[at + skip + 1], ARGV[at + skip + 2])
end
end
end`

export const kinds: Readonly<Record<string, Kind>> = {
  ban: {
    numbers: ['units', 'within', 'spans_text'],
    state: `level_N, strikes_N, since_N`,
    functions: ban_functions,
    alone: '',
    prepare: '',
    load: ban_load,
    charge: '',
    deny: '',
  },
  permits: {
    numbers: ['units', 'span'],
    state: `used_N, last_N, frees_N, taken_N`,
    functions: permits_functions,
    alone: '',
    prepare: permits_prepare,
    load: permits_load,
    charge: permits_charge,
    deny: permits_deny,
  },
  quota: {
    numbers: ['units', 'span', 'terms_text'],
    state: `unpack(rich_N)`,
    functions: quota_functions,
    alone: quota_alone,
    prepare: quota_prepare,
    load: quota_load,
    charge: quota_charge,
    deny: quota_deny,
  },
  parts: {
    numbers: ['units', 'span', 'parts'],
    state: `start_N - passed_N * part_N, live_N > 0 and counts_text_N or ''`,
    functions: parts_functions,
    alone: '',
    prepare: parts_prepare,
    load: parts_load,
    charge: parts_charge,
    deny: '',
  },
  counter: {
    numbers: ['units', 'span'],
    state: `previous_N, current_N, (odd_N and window_N + 1 or window_N) * span_N, reset_N`,
    functions: '',
    alone: counter_alone,
    prepare: counter_prepare,
    load: counter_load,
    charge: counter_charge,
    deny: counter_deny,
  },
  log: {
    numbers: ['units', 'span'],
    state: `used_N, last_N, leaves_N`,
    functions: log_functions,
    alone: '',
    prepare: log_prepare,
    load: log_load,
    charge: log_charge,
    deny: log_deny,
  },
  bucket: {
    numbers: ['units', 'rate', 'capacity_text'],
    state: `stored_N, written_N`,
    functions: bucket_functions,
    alone: '',
    prepare: bucket_prepare,
    load: bucket_load,
    charge: bucket_charge,
    deny: '',
  },
}

export const scripts: Readonly<Record<'changes' | 'control' | 'credit' | 'decide' | 'heartbeat' | 'history' | 'overrides' | 'peek' | 'permissions' | 'refund' | 'renew' | 'reset' | 'statistics', Script>> = {
  changes: {
    sha: '019a5d7c71c29c22b36da670a0d742f514d1b878',
    functionName: 'headgate_e134dd5f_changes',
    text: `${timed}
if ARGV[2] ~= '' then
redis.call('LPUSH', KEYS[1], string.format('%.0f ', math.floor(now / 1000)) .. ARGV[2])
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[3]) - 1)
expire_after(KEYS[1], tonumber(ARGV[4]))
end
return redis.call('LRANGE', KEYS[1], 0, -1)`,
  },
  control: {
    sha: 'c9133a9df9e4d648d46ac18f39214f752201686b',
    functionName: 'headgate_e134dd5f_control',
    text: `for i = 1, #ARGV, 2 do
redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
local fields = { 'enabled', 'multiplier' }
local values = redis.call('HMGET', KEYS[1], fields[1], fields[2])
local reply = {}
for i, field in ipairs(fields) do
if values[i] then
reply[#reply + 1] = field
reply[#reply + 1] = values[i]
end
end
return reply`,
  },
  credit: {
    sha: 'dec67f0dd9a194fb35984a6ab77c737fa302560b',
    functionName: 'headgate_e134dd5f_credit',
    text: `${state}
local function credit_quota(key_N, amount, lasts, units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${quota_prepare}
${quota_load}
${quota_deny}
${quota_credit}
end
local credits = { quota = credit_quota }
expect_current(2, 1000, 1)
local amount = ARGV[6] + 0
local is_done = amount > 0 and call('EXISTS', KEYS[2]) == 1
if is_done then
amount = 0
end
local reply = credits[ARGV[2]](KEYS[1], amount, ARGV[7] == '1', ARGV[3], ARGV[4], ARGV[5])
if amount > 0 then
call('SET', KEYS[2], '1', 'PX', ARGV[8])
end
if is_done then
reply[1] = 0
end
reply[#reply + 1] = now
return reply`,
  },
  decide: {
    sha: 'b97b1ad8e769238741dfa715cff36d2927cd0bf6',
    functionName: 'headgate_e134dd5f_decide',
    text: `${state}
local function check_ban(key_N, cost_N, units_N, within_N, spans_text_N)
units_N, within_N = units_N + 0, within_N + 0
${ban_load}
local function charge()
end
local function state(is_charged)
if is_charged == 0 then
end
return { is_charged, level_N, strikes_N, since_N }
end
return left_N, odd_N, charge, state
end
local function check_permits(key_N, cost_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
${permits_prepare}
${permits_load}
local function charge()
${permits_charge}
end
local function state(is_charged)
if is_charged == 0 then
${permits_deny}
end
return { is_charged, used_N, last_N, frees_N, taken_N }
end
return left_N, odd_N, charge, state
end
local function check_quota(key_N, cost_N, units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
${quota_prepare}
${quota_load}
local function charge()
${quota_charge}
end
local function state(is_charged)
if is_charged == 0 then
${quota_deny}
end
return { is_charged, unpack(rich_N) }
end
return left_N, odd_N, charge, state
end
local function check_parts(key_N, cost_N, units_N, span_N, parts_N)
units_N, span_N, parts_N = units_N + 0, span_N + 0, parts_N + 0
${parts_prepare}
${parts_load}
local function charge()
${parts_charge}
end
local function state(is_charged)
if is_charged == 0 then
end
return { is_charged, start_N - passed_N * part_N, live_N > 0 and counts_text_N or '' }
end
return left_N, odd_N, charge, state
end
local function check_counter(key_N, cost_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
${counter_prepare}
${counter_load}
local function charge()
${counter_charge}
end
local function state(is_charged)
if is_charged == 0 then
${counter_deny}
end
return { is_charged, previous_N, current_N, (odd_N and window_N + 1 or window_N) * span_N, reset_N }
end
return left_N, odd_N, charge, state
end
local function check_log(key_N, cost_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
${log_prepare}
${log_load}
local function charge()
${log_charge}
end
local function state(is_charged)
if is_charged == 0 then
${log_deny}
end
return { is_charged, used_N, last_N, leaves_N }
end
return left_N, odd_N, charge, state
end
local function check_bucket(key_N, cost_N, units_N, rate_N, capacity_text_N)
units_N, rate_N = units_N + 0, rate_N + 0
${bucket_prepare}
${bucket_load}
local function charge()
${bucket_charge}
end
local function state(is_charged)
if is_charged == 0 then
end
return { is_charged, stored_N, written_N }
end
return left_N, odd_N, charge, state
end
local checks = { ban = check_ban, permits = check_permits, quota = check_quota, parts = check_parts, counter = check_counter, log = check_log, bucket = check_bucket }
local alternatives = ARGV[2] + 0
local limits = math.max(1, ARGV[3 + alternatives] + 0)
expect_current(alternatives + 4, 5, 2)
local function look(question, index)
local at = 5 * index + alternatives - 1
local cost = ARGV[at + 1] + 0
local left, is_odd, charge, state =
checks[ARGV[at]](KEYS[question + index], cost, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
return { left = left, is_odd = is_odd, charge = charge, state = state, cost = cost }
end
local function charge_all(question, from, to)
local looked, told, fits = {}, {}, true
for index = from, to do
looked[index] = look(question, index)
fits = fits and looked[index].left >= 0
end
for index = from, to do
local check = looked[index]
local is_charged = fits and check.cost > 0
if is_charged then
check.charge()
end
told[index] = is_charged and not check.is_odd and check.left or check.state(is_charged and 1 or 0)
end
return fits, told
end
local reply = {}
for question = 0, #KEYS - 1, limits do
local charged, values, from = -1, {}, 1
for alternative = 1, alternatives do
local to = ARGV[2 + alternative] + 0
if charged == -1 then
local is_done, fits, told = pcall(charge_all, question, from, to)
if not is_done then
local text = problem_of_key(fits)
if not text then
return failed(fits)
end
charged = { text }
else
for index, value in pairs(told) do
values[index] = value
end
charged = fits and alternative - 1 or -1
end
end
from = to + 1
end
for index = type(charged) == 'table' and limits + 1 or from, limits do
local is_done, fits, told = pcall(charge_all, question, index, index)
local text = not is_done and problem_of_key(fits)
if not is_done and not text then
return failed(fits)
end
values[index] = is_done and told[index] or { text }
end
reply[#reply + 1] = charged
for index = 1, limits do
reply[#reply + 1] = values[index] or 0
end
end
reply[#reply + 1] = now
return reply`,
  },
  heartbeat: {
    sha: 'df30646d4a6c442d2ec5da1fbfad6d9eef43d6a1',
    functionName: 'headgate_e134dd5f_heartbeat',
    text: `${timed}
local keep_us = tonumber(ARGV[3])
local remember_us = tonumber(ARGV[4])
local service = ARGV[5]
local before = redis.call('ZSCORE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - remember_us)
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + keep_us, '+inf')
expire_after(KEYS[1], remember_us)
local function count(from, to)
if service == '' then return redis.call('ZCOUNT', KEYS[1], from, to) end
local found = 0
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], from, to)) do
local slash = string.find(member, '/', 1, true)
if not slash or string.sub(member, 1, slash - 1) == service then found = found + 1 end
end
return found
end
local live = count(now - keep_us, '+inf')
local missed = count('-inf', '(' .. string.format('%.0f', now - keep_us))
return { live, string.format('%.0f', now), before or '', live + missed, redis.call('ZCARD', KEYS[1]) }`,
  },
  history: {
    sha: 'd2f3a93d444e77efa91ef15c9fd6c09f2261531e',
    functionName: 'headgate_e134dd5f_history',
    text: `if ARGV[1] == '' then
return redis.call('HGETALL', KEYS[1])
end
local known = redis.call('HMGET', KEYS[1], ARGV[1])[1] or '0 0 '
local start, seconds = string.match(known, '^(%d+) (%d+) ')
local newer = tonumber(ARGV[2]) - (tonumber(start) or 0)
if newer > 0 or (newer == 0 and tonumber(ARGV[3]) > (tonumber(seconds) or 0)) then
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return {}`,
  },
  overrides: {
    sha: 'e122a0861cb1d342b848e6f8f30bdc53d6e03c5b',
    functionName: 'headgate_e134dd5f_overrides',
    text: `${timed}
local now_us = now
local now = math.floor(now_us / 1000)
local key = KEYS[1]
local REVISION = '#revision'
local NEXT_END = '#next-end'
if ARGV[3] == 'read' and ARGV[2] ~= '' then
local known = redis.call('HMGET', key, REVISION, NEXT_END)
if known[1] == ARGV[2] and now < (tonumber(known[2] or '0') or 0) then
return { now, known[1], 0, 'same' }
end
end
local entries = redis.call('HGETALL', key)
local kept = {}
local count = 0
local revision = ''
local was_there = 0
local changed = false
local earliest = math.huge
local latest = now
local function keep(target, entry, expires)
kept[#kept + 1] = target
kept[#kept + 1] = entry
earliest = math.min(earliest, expires)
latest = math.max(latest, expires)
end
for i = 1, #entries, 2 do
local target = entries[i]
if target == REVISION then
revision = entries[i + 1]
elseif target ~= NEXT_END then
local expires = tonumber(string.match(entries[i + 1], '^%d+ (%d+) ') or '0')
if expires > 8.64e15 then expires = 0 end
if target == ARGV[4] and expires > now then was_there = 1 end
local removed = target == ARGV[4] and ARGV[3] == 'remove'
if expires <= now or removed then
redis.call('HDEL', key, target)
changed = true
elseif not (target == ARGV[4] and ARGV[3] == 'put') then
keep(target, entries[i + 1], expires)
count = count + 1
end
end
end
local is_full = ARGV[3] == 'put' and count >= tonumber(ARGV[7])
if ARGV[3] == 'put' and not is_full then
local expires = now + tonumber(ARGV[6])
local entry = string.format('%.0f %.0f ', now, expires) .. ARGV[5]
redis.call('HSET', key, ARGV[4], entry)
keep(ARGV[4], entry, expires)
changed = true
end
if changed or ARGV[3] == 'remove' then
revision = string.format('%.0f', math.max(now_us, (tonumber(revision) or 0) + 1))
if #kept > 0 then
redis.call('HSET', key, REVISION, revision, NEXT_END, string.format('%.0f', earliest))
expire_after(key, (latest - now) * 1000)
elseif ARGV[3] == 'remove' then
redis.call('DEL', key)
redis.call('HSET', key, REVISION, revision)
expire_after(key, 31 * 86400 * 1000000)
else
redis.call('DEL', key)
revision = ''
end
end
if is_full then
return { now, 'full', was_there }
end
if ARGV[2] ~= '' and revision == ARGV[2] then
return { now, revision, was_there, 'same' }
end
local reply = { now, revision, was_there }
for i = 1, #kept do reply[#reply + 1] = kept[i] end
return reply`,
  },
  peek: {
    sha: '384b54d86288377f06a6159c2e5fad43543a8254',
    functionName: 'headgate_e134dd5f_peek',
    text: `${state}
local function look_at_ban(key_N, cost_N, units_N, within_N, spans_text_N)
units_N, within_N = units_N + 0, within_N + 0
${ban_load}
return { 0, level_N, strikes_N, since_N }
end
local function look_at_permits(key_N, cost_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
${permits_prepare}
${permits_load}
${permits_deny}
return { 0, used_N, last_N, frees_N, taken_N }
end
local function look_at_quota(key_N, cost_N, units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
${quota_prepare}
${quota_load}
${quota_deny}
return { 0, unpack(rich_N) }
end
local function look_at_parts(key_N, cost_N, units_N, span_N, parts_N)
units_N, span_N, parts_N = units_N + 0, span_N + 0, parts_N + 0
${parts_prepare}
${parts_load}
return { 0, start_N - passed_N * part_N, live_N > 0 and counts_text_N or '' }
end
local function look_at_counter(key_N, cost_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
${counter_prepare}
${counter_load}
${counter_deny}
return { 0, previous_N, current_N, (odd_N and window_N + 1 or window_N) * span_N, reset_N }
end
local function look_at_log(key_N, cost_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
${log_prepare}
${log_load}
${log_deny}
return { 0, used_N, last_N, leaves_N }
end
local function look_at_bucket(key_N, cost_N, units_N, rate_N, capacity_text_N)
units_N, rate_N = units_N + 0, rate_N + 0
${bucket_prepare}
${bucket_load}
return { 0, stored_N, written_N }
end
local looks = { ban = look_at_ban, permits = look_at_permits, quota = look_at_quota, parts = look_at_parts, counter = look_at_counter, log = look_at_log, bucket = look_at_bucket }
expect_current(2, 5, 2)
local reply = {}
for index, key in ipairs(KEYS) do
local at = 5 * index - 3
local is_done, state = pcall(looks[ARGV[at]], key, ARGV[at + 1] + 0, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
local text = not is_done and problem_of_key(state)
if not is_done and not text then
return failed(state)
end
reply[index] = is_done and state or { text }
end
reply[#reply + 1] = now
return reply`,
  },
  permissions: {
    sha: 'dc3ab99bc081a315232f352ed18cd89b2d2109c8',
    functionName: 'headgate_e134dd5f_permissions',
    text: `local missing = {}
if redis.acl_check_cmd then
for _, command in ipairs(ARGV) do
if not redis.acl_check_cmd(command, KEYS[1], KEYS[1]) then
missing[#missing + 1] = command
end
end
end
return missing`,
  },
  refund: {
    sha: '80addb473ab41a8f0efe46f07864c658cfbbc1d8',
    functionName: 'headgate_e134dd5f_refund',
    text: `${state}
local function refund_permits(key_N, amount, charged_at, held_since, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${permits_prepare}
${permits_load}
${permits_refund}
end
local function refund_quota(key_N, amount, charged_at, held_since, units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${quota_prepare}
${quota_load}
${quota_refund}
end
local function refund_parts(key_N, amount, charged_at, held_since, units_N, span_N, parts_N)
units_N, span_N, parts_N = units_N + 0, span_N + 0, parts_N + 0
local cost_N = 0
${parts_prepare}
${parts_load}
${parts_refund}
end
local function refund_counter(key_N, amount, charged_at, held_since, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${counter_prepare}
${counter_load}
${counter_refund}
end
local function refund_log(key_N, amount, charged_at, held_since, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${log_prepare}
${log_load}
${log_refund}
end
local function refund_bucket(key_N, amount, charged_at, held_since, units_N, rate_N, capacity_text_N)
units_N, rate_N = units_N + 0, rate_N + 0
local cost_N = 0
${bucket_prepare}
${bucket_load}
${bucket_refund}
end
local refunds = { permits = refund_permits, quota = refund_quota, parts = refund_parts, counter = refund_counter, log = refund_log, bucket = refund_bucket }
local function charge_beyond_ban(key_N, amount, charged_at, held_since, units_N, within_N, spans_text_N)
units_N, within_N = units_N + 0, within_N + 0
local cost_N = 0
${ban_load}
${ban_beyond}
return 0
end
local function charge_beyond_quota(key_N, amount, charged_at, held_since, units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${quota_prepare}
${quota_load}
${quota_beyond}
return 0
end
local function charge_beyond_parts(key_N, amount, charged_at, held_since, units_N, span_N, parts_N)
units_N, span_N, parts_N = units_N + 0, span_N + 0, parts_N + 0
local cost_N = 0
${parts_prepare}
${parts_load}
${parts_beyond}
return 0
end
local function charge_beyond_counter(key_N, amount, charged_at, held_since, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${counter_prepare}
${counter_load}
${counter_beyond}
return 0
end
local function charge_beyond_log(key_N, amount, charged_at, held_since, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${log_prepare}
${log_load}
${log_beyond}
return 0
end
local function charge_beyond_bucket(key_N, amount, charged_at, held_since, units_N, rate_N, capacity_text_N)
units_N, rate_N = units_N + 0, rate_N + 0
local cost_N = 0
${bucket_prepare}
${bucket_load}
${bucket_beyond}
return 0
end
local charges = { ban = charge_beyond_ban, quota = charge_beyond_quota, parts = charge_beyond_parts, counter = charge_beyond_counter, log = charge_beyond_log, bucket = charge_beyond_bucket }
expect_current(2, 7, 1)
local reply = {}
for index, key in ipairs(KEYS) do
local at = 7 * index - 5
local units, charged_at, held_since = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0
local change = (units < 0 and charges or refunds)[ARGV[at]]
reply[index] = 0
if change then
local is_done, back = pcall(
change, key, math.abs(units), charged_at ~= -1 and charged_at or nil, held_since ~= -1 and held_since or now,
ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
)
if not is_done and not problem_of_key(back) then
return failed(back)
end
reply[index] = is_done and back or -2
end
end
return reply`,
  },
  renew: {
    sha: 'a91ef1f89508ab033baeef35e97c9bb419b9e5e6',
    functionName: 'headgate_e134dd5f_renew',
    text: `${state}
local function renew_permits(key_N, amount, charged_at, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${permits_prepare}
${permits_load}
${permits_renew}
end
local renewals = { permits = renew_permits }
local reply = {}
for index, key in ipairs(KEYS) do
local at = 6 * index - 4
local is_done, held =
pcall(renewals[ARGV[at]], key, ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
if not is_done and not problem_of_key(held) then
return failed(held)
end
reply[index] = is_done and held or -2
end
return reply`,
  },
  reset: {
    sha: '968508d8feb126ed132ec6ff94eb03e4a3100ea4',
    functionName: 'headgate_e134dd5f_reset',
    text: `${state}
local function reset_ban(key_N, units_N, within_N, spans_text_N)
units_N, within_N = units_N + 0, within_N + 0
local cost_N = 0
${ban_load}
${ban_reset}
end
local function reset_permits(key_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${permits_prepare}
${permits_load}
${permits_reset}
end
local function reset_quota(key_N, units_N, span_N, terms_text_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${quota_prepare}
${quota_load}
${quota_reset}
end
local function reset_parts(key_N, units_N, span_N, parts_N)
units_N, span_N, parts_N = units_N + 0, span_N + 0, parts_N + 0
local cost_N = 0
${parts_prepare}
${parts_load}
${parts_reset}
end
local function reset_counter(key_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${counter_prepare}
${counter_load}
${counter_reset}
end
local function reset_log(key_N, units_N, span_N)
units_N, span_N = units_N + 0, span_N + 0
local cost_N = 0
${log_prepare}
${log_load}
${log_reset}
end
local function reset_bucket(key_N, units_N, rate_N, capacity_text_N)
units_N, rate_N = units_N + 0, rate_N + 0
local cost_N = 0
${bucket_prepare}
${bucket_load}
${bucket_reset}
end
local resets = { ban = reset_ban, permits = reset_permits, quota = reset_quota, parts = reset_parts, counter = reset_counter, log = reset_log, bucket = reset_bucket }
expect_current(2, 4, 1)
local forgotten = 0
for index, key in ipairs(KEYS) do
local at = 4 * index - 2
if call('EXISTS', key) == 1 then
local is_done, problem = pcall(resets[ARGV[at]], key, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
if is_done then
forgotten = forgotten + 1
elseif not problem_of_key(problem) then
return failed(problem)
end
end
end
return forgotten`,
  },
  statistics: {
    sha: 'af68efb1ea7ae8fe3bf3d7b1c66d9c5b5b18a8cc',
    functionName: 'headgate_e134dd5f_statistics',
    text: `${timed}
local keep_us = tonumber(ARGV[4])
local name = ARGV[2]
local oldest = text_of(math.max(0, math.floor((now - tonumber(ARGV[5])) / 1000)))
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - keep_us)
for _, member in ipairs(gone) do redis.call('HDEL', KEYS[2], member) end
if #gone > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - keep_us) end
if name == '' then
local denials, after = {}, ARGV[8]
if after ~= 'none' then
local from = after == '' and oldest or '(' .. after
denials = redis.call('XRANGE', KEYS[3], from, '+', 'COUNT', ARGV[9])
end
return { text_of(now), redis.call('HGETALL', KEYS[2]), denials }
end
local is_known = redis.call('ZSCORE', KEYS[1], name)
if is_known or redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[6]) then
redis.call('ZADD', KEYS[1], now, name)
redis.call('HSET', KEYS[2], name, ARGV[3])
expire_after(KEYS[1], keep_us)
expire_after(KEYS[2], keep_us)
end
for i = 8, #ARGV do redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[7], '*', 'denial', ARGV[i]) end
if #ARGV >= 8 then
redis.call('XTRIM', KEYS[3], 'MINID', oldest)
expire_after(KEYS[3], tonumber(ARGV[5]))
end
return { text_of(now) }`,
  },
}
