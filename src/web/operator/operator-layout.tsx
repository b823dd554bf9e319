import { Outlet } from '@tanstack/react-router';
import { useMeQuery } from '../platform/app/me.ts';
import { NotFoundPage, Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { SectionLayout } from '../platform/app/section-layout.tsx';
import { operatorPages } from './operator-pages.ts';
import { operatorTexts } from './texts.tsx';

/** The pages of the installation. Only operators see them. */
export function OperatorLayout() {
  const query = useMeQuery();
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const me = query.data;
  if (me === undefined) return null;
  if (!me.isOperator) return <NotFoundPage />;
  return (
    <SectionLayout label={operatorTexts.pages} links={operatorPages}>
      <Outlet />
    </SectionLayout>
  );
}
