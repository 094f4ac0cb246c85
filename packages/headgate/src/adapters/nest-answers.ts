/** Writes outcomes to a Nest response, on Express or on Fastify. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { Request } from 'express'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Outcome, Refused } from './enforce.js'
import { applyOutcome as applyToFastify } from './fastify.js'
import { applyOutcome as applyToNode } from './node-response.js'

/**
 * Thrown for a refused request. Carries everything `RateLimitFilter` answers; its response is the problem of the
 * denial.
 */
export class RateLimitException extends HttpException {
  constructor(readonly refusal: Refused) {
    super(refusal.body, refusal.status)
  }
}

/** Answers refusals as every adapter does. A filter of the app's own for `RateLimitException` takes precedence. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch({ refusal }: RateLimitException, host: ArgumentsHost): void {
    applyOutcome(host, refusal)
  }
}
Catch(RateLimitException)(RateLimitFilter)

/** Writes headers, or a whole refusal, on either platform. */
export function applyOutcome(host: ArgumentsHost, outcome: Outcome): void {
  const request = requestOf(host)
  const response = host.switchToHttp().getResponse<ServerResponse | FastifyReply>()
  if (isFastify(request)) applyToFastify(outcome, request, response as FastifyReply, goOn)
  else applyToNode(outcome, request, response as ServerResponse, goOn)
}

/** Nest continues by itself after the guard returns. */
function goOn(): void {}

export function requestOf(host: ArgumentsHost): Request | FastifyRequest {
  return host.switchToHttp().getRequest()
}

export function isFastify(request: IncomingMessage | FastifyRequest): request is FastifyRequest {
  return 'raw' in request
}
