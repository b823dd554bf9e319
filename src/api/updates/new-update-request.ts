import type { UpdateKind } from '../../shared/updates/update-state.ts';

/** The request to create an update. */
export interface NewUpdateRequest {
  readonly kind: Extract<UpdateKind, 'update' | 'preview' | 'refresh' | 'destroy'>;
  readonly dryRun: boolean;
  readonly message: string;
  readonly environment: object;
  readonly config: object;
  readonly program: object;
}
