-- control.lua: change the fleet's switches, if there is anything to change, and read them.
-- KEYS[1]    the control hash, which people also edit by hand
-- ARGV       field, value, field, value...
-- returns    {field, value, ...} of the two fields that mean anything; others are left alone

for i = 1, #ARGV, 2 do
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
return reply
