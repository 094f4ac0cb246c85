-- A ban that grows; see src/algorithms/ban.ts.
-- @kind ban units within spans_text
--
-- A hash: `level`, how many bans there were; `strikes` since the last of them; `since`, the time of the first of these strikes, or
-- of the beginning of the ban if there are none, in microseconds, 16 digits. `spans_text` is how long each ban lasts, in
-- microseconds, the longest last: `60000000/600000000`. Asking writes nothing.

-- @load
local fields_N = call('HMGET', key_N, 'level', 'strikes', 'since')
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
end

-- @state level_N, strikes_N, since_N

-- @functions
-- How long the ban of a level lasts, and the longest.
local function span_of(text, level)
  local span, longest, count = 0, 0, 0
  for digits in string.gmatch(text, '%d+') do
    count, longest = count + 1, digits + 0
    if count <= level then
      span = longest
    end
  end
  return span, longest, count
end

-- When the last ban ends, or the first of the strikes since came; and whether it is forgotten.
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
end

-- @beyond
if left_N >= 0 then
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
end

-- @reset
call('DEL', key_N)
