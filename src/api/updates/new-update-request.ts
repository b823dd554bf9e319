import type { UpdateKind } from '../../shared/updates/update-state.ts';

export interface NewUpdateRequest {
  readonly kind: Extract<UpdateKind, 'update' | 'preview' | 'refresh' | 'destroy'>;
  readonly dryRun: boolean;
  readonly message: string;
  environment: object;
  config: object;
  program: object;
}

const readName = /^(ci|git|vcs)\./;
const maxRead = 1_000;

/** Drops the parts that are stored as text: the call may wait for hours, and small values take many times the memory of their text. */
export function dropStored(request: NewUpdateRequest): void {
  const read = Object.entries(request.environment).filter(
    ([name, value]) => readName.test(name) && (typeof value === 'string' || typeof value === 'boolean'),
  );
  request.environment = Object.fromEntries(read.slice(0, maxRead));
  request.config = {};
  request.program = {};
}
