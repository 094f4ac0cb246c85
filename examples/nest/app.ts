// NestJS on Express or Fastify: five requests a minute for each address, and two logins with a slow refill.
import { Controller, Get, HttpCode, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { RateLimit, RateLimitModule } from 'headgate/nest'

const limiter = createLimiter({
  policies: {
    api: slidingWindowLog({ limit: 5, window: '1m' }),
    login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})

@Controller()
class AppController {
  @Get()
  hello() {
    return 'hello\n'
  }

  @Post('login')
  @HttpCode(200)
  @RateLimit({ policy: 'login' })
  login() {
    return 'welcome\n'
  }

  @Get('health')
  @RateLimit(false)
  health() {
    return 'well\n'
  }
}

@Module({ imports: [RateLimitModule.forRoot({ limiter, policy: 'api' })], controllers: [AppController] })
class AppModule {}

const [platform = 'express', port = '3000'] = process.argv.slice(2)
const adapter = platform === 'fastify' ? new FastifyAdapter() : new ExpressAdapter()
const app = await NestFactory.create(AppModule, adapter, { logger: ['warn', 'error'] })
await app.listen(Number(port), '127.0.0.1')
console.log(await app.getUrl())
