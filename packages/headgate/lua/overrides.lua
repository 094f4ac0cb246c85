-- overrides.lua: put or remove an override, if asked to, drop those that have ended, and read the rest.
-- KEYS[1]    the overrides: a hash of target to '<set at ms> <expires at ms> <what replaces what>'
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    the revision the caller knows, or ''
-- ARGV[3]    'read', 'put' or 'remove'
-- ARGV[4]    target
-- ARGV[5]    what replaces what, as it is to be kept
-- ARGV[6]    for how many milliseconds
-- ARGV[7]    how many there may be
-- returns    {now in ms, revision, whether the target was there, 'same'} if nothing changed since the known revision,
--            else {now in ms, revision, whether the target was there, target, entry, target, entry, ...};
--            revision 'full' if there were too many to put another

-- @include timed

-- The times are part of each entry: a hash has no time to live for each field. Numbers of milliseconds fit a double.
local now_us = now
local now = math.floor(now_us / 1000)
local key = KEYS[1]
local REVISION = '#revision'
-- When the first of them ends: until then a reader who knows the revision need not look at any.
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
    -- No date is later. A hand has written it, and no override is meant to stay.
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
  -- A time, not a count: a hash that was gone meanwhile must not come back to a number somebody knows.
  revision = string.format('%.0f', math.max(now_us, (tonumber(revision) or 0) + 1))
  if #kept > 0 then
    redis.call('HSET', key, REVISION, revision, NEXT_END, string.format('%.0f', earliest))
    expire_after(key, (latest - now) * 1000)
  elseif ARGV[3] == 'remove' then
    -- A revision alone is a mark: nothing is left because somebody removed it, not because this server lost it. It stays as
    -- long as any override that a process may remember.
    redis.call('DEL', key)
    redis.call('HSET', key, REVISION, revision)
    expire_after(key, 31 * 86400 * 1000000)
  else
    redis.call('DEL', key)
    revision = ''
  end
end

-- Not before: what has ended was dropped, and readers must learn when the next one ends.
if is_full then
  return { now, 'full', was_there }
end
if ARGV[2] ~= '' and revision == ARGV[2] then
  return { now, revision, was_there, 'same' }
end
local reply = { now, revision, was_there }
for i = 1, #kept do reply[#reply + 1] = kept[i] end
return reply
