import { TransferError } from '../../shared/diy/diy-layout.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { SourceUnavailableError } from './service-client.ts';

/**
 * Whether one part of the source is damaged, so that the others can be imported without it. Any other error, for example a bucket that does
 * not answer, says nothing about the part.
 */
export function isDamage(error: unknown): boolean {
  if (error instanceof SourceUnavailableError) return false;
  return (
    error instanceof InvalidRequestError ||
    error instanceof TransferError ||
    error instanceof SyntaxError ||
    /^Z_|^ERR_ZSTD|^ZSTD/.test(String((error as { code?: unknown }).code))
  );
}
