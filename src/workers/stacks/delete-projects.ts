import type { AppContext } from '../../shared/context.ts';
import { createEmptyProjectRepository } from './empty-project-repository.ts';

/** Few, because nobody can create a stack in these projects until the commit. */
const projectsAtOnce = 50;

export async function deleteEmptyProjects({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  let deleted = 0;
  let looked = projectsAtOnce;
  while (looked === projectsAtOnce && !signal.aborted)
    deleted += await db.inTransaction(async (tx) => {
      const projects = createEmptyProjectRepository(tx);
      const ids = await projects.lock(projectsAtOnce);
      looked = ids.length;
      return projects.delete(ids);
    });
  return deleted;
}
