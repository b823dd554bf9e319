import { setTimeout as sleep } from 'node:timers/promises';
import { RawClient, ResponseError, type Update } from '../../../bench/support/raw-client.ts';

const attempts = 10;
const pauseMs = 1_000;

/** A client that repeats creations and starts, too, after errors that a busy machine explains. Only for stacks that nobody else updates. */
export class PatientClient extends RawClient {
  override async createStack(organization: string, project: string, stack: string): Promise<string> {
    const path = `/api/stacks/${organization}/${project}`;
    for (let attempt = 1; ; attempt++) {
      try {
        return await super.createStack(organization, project, stack);
      } catch (error) {
        // An earlier attempt, whose response was lost, has created it.
        if (attempt > 1 && error instanceof ResponseError && error.status === 409) return `${path}/${stack}`;
        if (isFinal(error) || attempt === attempts) throw error;
        await sleep(pauseMs);
      }
    }
  }

  override async startUpdate(stackPath: string, options: { journal?: boolean } = {}): Promise<Update> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await super.startUpdate(stackPath, options);
      } catch (error) {
        if (isFinal(error) || attempt === attempts) throw error;
        await sleep(pauseMs);
        await this.#cancel(stackPath);
      }
    }
  }

  /** Ends an update of which this client does not know whether it was created. */
  async #cancel(stackPath: string): Promise<void> {
    const { activeUpdate } = JSON.parse(await this.call('GET', stackPath)) as { activeUpdate: string };
    if (activeUpdate !== '') await this.call('POST', `${stackPath}/update/${activeUpdate}/cancel`);
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof ResponseError && error.status < 500 && error.status !== 429;
}
