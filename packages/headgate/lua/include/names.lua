-- Short names for what every check calls: looking up two names for each call is a tenth of our own part of a check.
local call, try, format, find = redis.call, redis.pcall, string.format, string.find
local ceil, floor = math.ceil, math.floor
