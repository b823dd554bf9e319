import type { FastifyInstance, FastifyRequest, preHandlerAsyncHookHandler, RouteOptions } from 'fastify';
import { Compile } from 'typebox/compile';
import { InvalidRequestError, UnsupportedMediaTypeError } from '../../../shared/platform/errors/errors.ts';
import { isPulumiProvider } from './pulumi-provider.ts';
import type { Dialect } from './request.ts';
import { describeIssues } from './schema-issues.ts';

const mediaTypePattern = /^application\/vnd\.(pulumi|service)\+([1-9]\d{0,5})$/i;
const oldestPulumiVersion = 8;
const mediaTypeMessage = 'The Accept header must name application/vnd.pulumi+8 (or later) or application/vnd.service+8';

/**
 * Reads the Accept header. The CLI adds its own value to that of the call, so there may be several; each is compared as a whole, without
 * its parameters. Pulumi's provider may ask for JSON, as its module `api` does.
 */
function dialectOf(request: FastifyRequest): Dialect | null {
  const mediaTypes = (request.headers.accept ?? '').split(',').map((value) => (value.split(';', 1)[0] ?? '').trim());
  for (const mediaType of mediaTypes) {
    const [, family, version] = mediaTypePattern.exec(mediaType) ?? [];
    if (family?.toLowerCase() === 'pulumi' && Number(version) >= oldestPulumiVersion) return 'pulumi';
    if (family?.toLowerCase() === 'service' && version === '8') return 'contract';
  }
  return isPulumiProvider(request) && mediaTypes.includes('application/json') ? 'pulumi' : null;
}

/**
 * Calls under /api/ that ask for no supported version get 415. Bodies in the contract's dialect are also checked against
 * `config.contractBody`.
 */
export function registerDialect(app: FastifyInstance): void {
  app.addHook('onRoute', addContractCheck);
  app.decorateRequest('dialect', 'pulumi');
  app.addHook('onRequest', (request, _reply, done) => {
    const dialect = dialectOf(request);
    if (dialect) request.dialect = dialect;
    const isKnown = dialect !== null || request.is404 === true || request.routeOptions.config.anyAccept === true;
    done(isKnown ? undefined : new UnsupportedMediaTypeError(mediaTypeMessage));
  });
}

function addContractCheck(route: RouteOptions): void {
  const body = route.config?.contractBody;
  if (!body) return;
  const validator = Compile(body);
  const check: preHandlerAsyncHookHandler = async (request) => {
    if (request.dialect !== 'contract' || validator.Check(request.body)) return;
    throw new InvalidRequestError(describeIssues(validator.Errors(request.body), 'body'));
  };
  route.preHandler = [check, ...[route.preHandler ?? []].flat()];
}
