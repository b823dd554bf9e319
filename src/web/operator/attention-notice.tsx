import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleCheck, TriangleAlert } from 'lucide-react';
import type { OperatorHealth } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { Notice } from '../platform/ui/notice.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { listProblems } from './attention.ts';
import styles from './health-page.module.css';
import { attentionTexts } from './texts.tsx';

const refreshMs = 10_000;

export function AttentionNotice({ health }: { readonly health: OperatorHealth | undefined }) {
  const queues = useQuery(trpc.operator.queues.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  const tasks = useQuery(trpc.operator.maintenance.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  const read = [queues, tasks].every(({ data, isError }) => data !== undefined || isError);
  if (health === undefined || !read)
    return <Notice tone="neutral" icon={<CircleCheck size={17} />} title={<Skeleton width={180} />} />;
  const problems = listProblems(
    health,
    queues.isError ? null : (queues.data?.queues ?? null),
    tasks.isError ? null : (tasks.data ?? null),
  );
  if (problems.length === 0)
    return <Notice tone="neutral" icon={<CircleCheck size={17} />} title={attentionTexts.nothing} />;
  return (
    <Notice tone="failure" icon={<TriangleAlert size={17} />} title={attentionTexts.count(problems.length)}>
      <ul className={styles['problems']}>
        {problems.map(({ hint, page, what }) => (
          <li key={what}>
            {page === null ? <strong>{what}</strong> : <Link to={page}>{what}</Link>}
            {hint === '' ? null : <span>{hint}</span>}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
