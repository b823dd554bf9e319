import type { FastifyInstance, preHandlerAsyncHookHandler, RouteOptions } from 'fastify';
import { Compile } from 'typebox/compile';
import { InvalidRequestError, UnsupportedMediaTypeError } from '../../shared/platform/errors/errors.ts';
import type { Dialect } from '../request.ts';

const mediaTypePattern = /^application\/vnd\.(pulumi|service)\+([1-9]\d{0,5})$/i;
const oldestPulumiVersion = 8;

/**
 * Reads the protocol version in Accept. The CLI adds its own to what a call asks for, so there may be several values; each counts
 * as a whole, without its parameters.
 */
function dialectOf(accept: string | undefined): Dialect | null {
  for (const value of (accept ?? '').split(',')) {
    const mediaType = value.split(';', 1)[0] ?? '';
    const [, family, version] = mediaTypePattern.exec(mediaType.trim()) ?? [];
    if (family?.toLowerCase() === 'pulumi' && Number(version) >= oldestPulumiVersion) return 'pulumi';
    if (family?.toLowerCase() === 'service' && version === '8') return 'contract';
  }
  return null;
}

/**
 * Sets `request.dialect`; 415 for calls under /api/ that ask for no version we speak. Bodies in the contract's dialect are checked
 * against `config.contractBody`.
 */
export function registerDialect(app: FastifyInstance): void {
  app.addHook('onRoute', addContractCheck);
  app.decorateRequest('dialect', 'pulumi');
  app.addHook('onRequest', async (request) => {
    const dialect = dialectOf(request.headers.accept);
    if (dialect) request.dialect = dialect;
    else if (request.is404 !== true && request.routeOptions.config.anyAccept !== true) {
      throw new UnsupportedMediaTypeError(
        'The Accept header must name application/vnd.pulumi+8 (or later) or application/vnd.service+8',
      );
    }
  });
}

function addContractCheck(route: RouteOptions): void {
  const body = route.config?.contractBody;
  if (!body) return;
  const checked = Compile(body);
  const check: preHandlerAsyncHookHandler = async (request) => {
    if (request.dialect !== 'contract' || checked.Check(request.body)) return;
    const [issue] = checked.Errors(request.body);
    throw new InvalidRequestError(`body${issue?.instancePath ?? ''} ${issue?.message ?? 'is not valid'}`);
  };
  route.preHandler = [check, ...[route.preHandler ?? []].flat()];
}
