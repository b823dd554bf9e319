import type { Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { InvalidRequestError, PayloadTooLargeError } from '../../shared/platform/errors/errors.ts';
import { JsonScanner, type Span } from '../../shared/platform/json/json-scanner.ts';
import { parseInSlices } from '../../shared/platform/json/parse-in-slices.ts';
import { scanInSlices } from '../../shared/platform/slices/slices.ts';
import { noEnvironments, noRemoteConfig } from '../platform/http/other-products.ts';
import { describeIssues } from '../platform/http/schema-issues.ts';
import { CreateStackRequest } from './stacks.schemas.ts';

const checked = Compile(CreateStackRequest);

/** The size of the request without the state. */
const maxOtherBytes = 4 * 1024 * 1024;

/** The bytes of the state share the memory of the body. */
export interface CreateRequest {
  readonly request: Static<typeof CreateStackRequest>;
  readonly state: Buffer | null;
}

/** The state is not parsed. Throws InvalidRequestError, JsonSyntaxError, PayloadTooLargeError. */
export async function readCreateRequest(body: Buffer): Promise<CreateRequest> {
  let found: Span | null = null;
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: (path, kind, start, end) => {
      // If a member is repeated, the last one counts.
      if (path[0] === 'state') found = kind === 'object' ? { start, end } : null;
    },
  });
  await scanInSlices(scanner, body);
  scanner.end();
  const state = found as Span | null;
  const parts = state ? [body.subarray(0, state.start), Buffer.from('{}'), body.subarray(state.end)] : [body];
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  if (bytes > maxOtherBytes)
    throw new PayloadTooLargeError(
      `The request has ${bytes} bytes without its state; at most ${maxOtherBytes} are accepted`,
    );
  const request = await parseInSlices(Buffer.concat(parts));
  if (!checked.Check(request)) throw new InvalidRequestError(describeIssues(checked.Errors(request), 'body'));
  if (request.config) throw new InvalidRequestError(`Nothing was created: ${noRemoteConfig}`);
  if (request.createManagedEnvironment) throw new InvalidRequestError(`Nothing was created: ${noEnvironments}`);
  return { request, state: state && body.subarray(state.start, state.end) };
}
