import { MovingError } from '../../shared/diy/diy-layout.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { SourceUnavailableError } from './service-client.ts';

/** Whether something is wrong with one entry of the source, so that the others can come without it. */
export function isDamage(error: unknown): boolean {
  if (error instanceof SourceUnavailableError) return false;
  return (
    error instanceof InvalidRequestError ||
    error instanceof MovingError ||
    error instanceof SyntaxError ||
    /^Z_|^ERR_ZSTD|^ZSTD/.test(String((error as { code?: unknown }).code))
  );
}
