import { denseSliceBytes, inSlices } from '../../../platform/slices/slices.ts';
import type { CheckpointRepository } from '../../checkpoints/checkpoint-repository.ts';
import type { DocumentReader } from '../../checkpoints/document-reader.ts';
import { DocumentMissingError } from '../../checkpoints/document-store.ts';
import { KeptUrns } from '../../deployments/kept-urns.ts';
import { LiveUrns } from '../../deployments/live-urns.ts';

/** The resources that existed before an update. */
export class BaseUrns {
  readonly #checkpoints: CheckpointRepository;
  readonly #documentReader: DocumentReader;
  readonly #kept = new KeptUrns();

  constructor(parts: { checkpoints: CheckpointRepository; documentReader: DocumentReader }) {
    this.#checkpoints = parts.checkpoints;
    this.#documentReader = parts.documentReader;
  }

  /** Throws the errors of DocumentReader.open. */
  async of(checkpointId: string | null): Promise<ReadonlySet<string>> {
    return checkpointId === null ? new Set() : this.#kept.of(checkpointId, () => this.#read(checkpointId));
  }

  async #read(checkpointId: string): Promise<ReadonlySet<string>> {
    const checkpoint = await this.#checkpoints.find(checkpointId);
    // A repair replaced the checkpoint after its id was read.
    if (!checkpoint) throw new DocumentMissingError('The state was replaced while it was read; please retry');
    const scanner = new LiveUrns();
    for await (const chunk of inSlices(this.#documentReader.open(checkpoint), denseSliceBytes)) scanner.write(chunk);
    return scanner.end();
  }
}
