/** Writes down what was decided about a request of Nest, on Express or on Fastify. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { Request } from 'express'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Outcome, Refused } from './enforce.js'
import { applyOutcome as applyToFastify } from './fastify.js'
import { applyOutcome as applyToNode } from './node-response.js'

/** A request that is refused, with all that `RateLimitFilter` answers. Its response is the problem of the denial. */
export class RateLimitException extends HttpException {
  constructor(readonly refusal: Refused) {
    super(refusal.body, refusal.status)
  }
}

/** Answers refusals as every adapter does. A filter of the app's own for `RateLimitException` comes before it. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch({ refusal }: RateLimitException, host: ArgumentsHost): void {
    applyOutcome(host, refusal)
  }
}
Catch(RateLimitException)(RateLimitFilter)

/** Writes headers down, or a whole refusal, on either platform. */
export function applyOutcome(host: ArgumentsHost, outcome: Outcome): void {
  const request = requestOf(host)
  const response = host.switchToHttp().getResponse<ServerResponse | FastifyReply>()
  if (isFastify(request)) applyToFastify(outcome, request, response as FastifyReply, goOn)
  else applyToNode(outcome, request, response as ServerResponse, goOn)
}

/** Nest goes on by itself when the guard has returned. */
function goOn(): void {}

export function requestOf(host: ArgumentsHost): Request | FastifyRequest {
  return host.switchToHttp().getRequest()
}

export function isFastify(request: IncomingMessage | FastifyRequest): request is FastifyRequest {
  return 'raw' in request
}
