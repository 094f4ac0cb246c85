-- Sliding-window counter in sub-windows; see algorithms/sliding-window-buckets.ts.
-- A hash: `start` of the newest part in microseconds, and `counts` of the parts, newest first, with commas between.
-- `units` are the limit's, `span` is its window in microseconds, `parts` is how many it is cut into.

-- @fragment parts.locals
local part, part_start, part_start_text, parts_keep_text, start, counts, counts_text, live, passed, used, newest

-- @fragment parts.prepare
-- The same for all keys: how long a part is, and the part of now. Rounded up: parts never cover less than the window.
part = ceil(span / parts)
part_start = now - now % part
part_start_text = format('%d', part_start)

-- @fragment parts.load
-- In: `key`, `span`, `parts`, `expects_new`, and what parts.prepare worked out. Out: `at`, `start` and the locals above, or
-- `failure`. `counts` are as stored, `passed` parts ago; the first `live` of them count.
local fields, stored_text
if not expects_new or call('EXISTS', key) == 1 then
  fields = try('HMGET', key, 'start', 'counts')
  stored_text = fields[1]
end
at, start, counts, counts_text, live, passed, used, newest = now, part_start, nil, nil, 0, parts + 1, 0, 0
if stored_text then
  local stored = stored_text == part_start_text and part_start or whole(stored_text)
  counts_text = fields[2]
  local is_read = stored and counts_text and find(counts_text, '^%d[%d,]*$')
  if is_read then
    -- One call for all numbers; two commas in a row are not ours.
    is_read, counts = pcall(cjson.decode, '[' .. counts_text .. ']')
  end
  if not is_read then
    failure = BAD_STATE
  -- From before the clock stepped back where it would deny for more than two windows.
  elseif stored - now <= 2 * span - (parts + 1) * part then
    if stored > now then
      at, start = stored, stored - stored % part
    end
    passed = (start - stored) / part
    if passed <= parts then
      live = parts + 1 - passed
      if live > #counts then
        live = #counts
      end
      for index = 1, live do
        used = used + counts[index]
      end
      if passed == 0 then
        newest = counts[1]
      end
      if used > MAX_SAFE then
        failure = BAD_STATE
      end
    end
  end
elseif fields then
  -- @inline hash.empty
end
expects_new = not stored_text

-- @fragment parts.wait
-- In: `cost` and what was loaded. Out: `wait_us`.
if cost > units then
  wait_us = NEVER
elseif used + cost <= units then
  wait_us = 0
else
  -- The oldest go first; what was written last stays the longest.
  local excess, index = used + cost - units, live
  while index > 1 and excess > counts[index] do
    excess, index = excess - counts[index], index - 1
  end
  wait_us = start + (parts + 2 - index - passed) * part - now
end

-- @fragment parts.charge
used, newest = used + cost, newest + cost
-- @inline parts.save

-- @fragment parts.save
-- The older parts stay as they are written.
local text = format('%d', newest)
if passed > 0 then
  text = live == 0 and text or text .. string.rep(',0', passed - 1) .. ',' .. table.concat(counts, ',', 1, live)
elseif live > 1 then
  text = text .. string.sub(counts_text, find(counts_text, ',', 1, true), -1)
end
call('HSET', key, 'start', start == part_start and part_start_text or format('%d', start), 'counts', text)
-- Two windows from the first write in a part cover all the time in which what is written in it can matter.
if passed > 0 then
  parts_keep_text = parts_keep_text or format('%d', ceil(2 * span / 1000) + grace_ms)
  call('PEXPIRE', key, start <= now and parts_keep_text
    or format('%d', ceil((start - now + 2 * span) / 1000) + grace_ms))
end

-- @fragment parts.left
left = units - used

-- @fragment parts.tell
-- Units left, and the time until no counted part holds any unit.
remaining, reset_us = used < units and units - used or 0, 0
if newest > 0 then
  reset_us = start + (parts + 1) * part - now
else
  for index = 1, live do
    if counts[index] > 0 then
      reset_us = start + (parts + 2 - index - passed) * part - now
      break
    end
  end
end

-- @fragment parts.keep
kept[check] = { counts or false, counts_text or false, live, passed, used, newest, start, at }

-- @fragment parts.recall
local state = kept[check]
counts, counts_text, live, passed, used, newest = state[1], state[2], state[3], state[4], state[5], state[6]
start, at = state[7], state[8]

-- @fragment parts.functions
local function make_parts()
  local algorithm = {}

  function algorithm.load(key, limit)
    local span, parts, at, failure, expects_new = limit.window_us, limit.buckets, nil, nil, nil
    -- @inline parts.locals
    -- @inline parts.prepare
    -- @inline parts.load
    if failure then
      return nil, failure
    end
    return {
      key = key,
      counts = counts,
      counts_text = counts_text,
      live = live,
      passed = passed,
      used = used,
      newest = newest,
      part = part,
      start = start,
      at = at,
    }
  end

  local function save(limit, state)
    local span, parts, key, start, passed = limit.window_us, limit.buckets, state.key, state.start, state.passed
    local counts, counts_text, live, newest = state.counts, state.counts_text, state.live, state.newest
    local part, part_start, part_start_text, parts_keep_text
    -- @inline parts.prepare
    -- @inline parts.save
  end

  function algorithm.charge_beyond(limit, state, units)
    local cost = math.min(units, room_beyond(limit, state.used))
    if cost > 0 then
      state.newest = state.newest + cost
      save(limit, state)
    end
  end

  function algorithm.refund(limit, state, units, charged_at)
    local charged_age = charged_at and (state.start - (charged_at - charged_at % state.part)) / state.part
    local left = units
    for index = state.live, 1, -1 do
      if not charged_at or charged_age == index - 1 + state.passed then
        local back = math.min(left, state.counts[index])
        state.counts[index] = state.counts[index] - back
        left = left - back
      end
    end
    if left < units then
      state.counts_text = table.concat(state.counts, ',', 1, state.live)
      state.newest = state.passed == 0 and state.counts[1] or 0
      save(limit, state)
    end
    return units - left
  end

  return algorithm
end
