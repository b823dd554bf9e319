import type { Dialect } from '../platform/http/request.ts';
import type { ContractImportResponse } from '../platform/protocol/contract.ts';
import type { Either } from '../platform/protocol/core.ts';
import type { ImportResponse } from './state.schemas.ts';

/** The CLI reads `updateId`, the contract specifies `updateID`. */
export function importResponse(
  dialect: Dialect,
  updateId: string,
): Either<typeof ImportResponse, typeof ContractImportResponse> {
  return dialect === 'contract' ? { updateID: updateId } : { updateId, updateID: updateId };
}
