import { Link, useMatches, useParams } from '@tanstack/react-router';
import { cloneElement, Fragment, type ReactElement } from 'react';
import { breadcrumbTexts, pageTexts } from '../texts.tsx';
import { CutName } from '../ui/cut-name.tsx';
import styles from './breadcrumb.module.css';
import { useMe } from './me.ts';

/** Without it, each part of the page's path would count as the current page. */
const exact = { activeOptions: { exact: true } } as const;

/** The page's own title repeats the last part. */
export function Breadcrumb() {
  const { organization, project, run, stack, team, updateId, version, webhook } = useParams({ strict: false });
  // A path without a page, such as "/acme/~/nowhere", looks like the path of a stack.
  const isPage = organization === '~' || project === '~';
  const matches = useMatches();
  const crumb = matches.findLast(({ staticData }) => staticData.crumb !== undefined)?.staticData.crumb;
  const isOperator = useMe()?.isOperator === true;
  const isOfOperator = isOperator && matches.some(({ routeId }) => routeId === '/~/operator');
  const parts: ReactElement<{ 'aria-current'?: 'page' }>[] = [
    <Link key="root" {...exact} to={isOfOperator ? '/~/operator' : '/'}>
      {isOfOperator ? pageTexts.operations : pageTexts.stacks}
    </Link>,
  ];
  if (organization !== undefined && organization !== '~')
    parts.push(
      <Link key="organization" {...exact} to="/$organization" params={{ organization }} title={organization}>
        <CutName text={organization} />
      </Link>,
    );
  if (!isPage && organization !== undefined && project !== undefined && stack !== undefined) {
    parts.push(
      <Link key="project" {...exact} to="/$organization" params={{ organization }} search={{ project }} title={project}>
        <CutName text={project} />
      </Link>,
      <Link
        key="stack"
        {...exact}
        to="/$organization/$project/$stack"
        params={{ organization, project, stack }}
        title={stack}
      >
        <CutName text={stack} />
      </Link>,
    );
    if (version !== undefined) parts.push(<span key="update">{breadcrumbTexts.update(version)}</span>);
    // The page is identified by an id: a preview or an update.
    if (updateId !== undefined) parts.push(<span key="run">{breadcrumbTexts.run}</span>);
  }
  // The list that the item belongs to.
  const list = team !== undefined ? 'teams' : webhook !== undefined ? 'webhooks' : run !== undefined ? 'imports' : null;
  if (organization !== undefined && list !== null)
    parts.push(
      <Link key="list" {...exact} to={`/$organization/~/${list}`} params={{ organization }}>
        {pageTexts[list]}
      </Link>,
    );
  if (organization !== undefined && team !== undefined)
    parts.push(
      <Link key="team" {...exact} to="/$organization/~/teams/$team" params={{ organization, team }} title={team}>
        <CutName text={team} />
      </Link>,
    );
  else if (crumb !== undefined) parts.push(<span key="page">{crumb}</span>);
  return (
    <nav className={styles['breadcrumb']} aria-label={breadcrumbTexts.whereYouAre}>
      {parts.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position identifies a part.
        <Fragment key={at}>
          {at === 0 ? null : (
            <span className={styles['divider']} aria-hidden="true">
              /
            </span>
          )}
          {at === parts.length - 1 ? cloneElement(part, { 'aria-current': 'page' }) : part}
        </Fragment>
      ))}
    </nav>
  );
}
