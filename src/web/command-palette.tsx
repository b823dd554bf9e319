import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type LinkProps, useNavigate } from '@tanstack/react-router';
import {
  Activity,
  Bookmark,
  Building2,
  History,
  Inbox,
  Info,
  Layers,
  LogOut,
  Monitor,
  Moon,
  Search,
  Star,
  Sun,
  UserRound,
  Waypoints,
  Workflow,
  Zap,
} from 'lucide-react';
import { type ReactNode, useDeferredValue, useEffect, useRef, useState } from 'react';
import styles from './command-palette.module.css';
import { operatorPages } from './operator/operator-pages.ts';
import type { StackRef } from './platform/app/contract.ts';
import { useMe } from './platform/app/me.ts';
import { organizationPages, useMayManage } from './platform/app/organization-pages.ts';
import { listPageActions, runPageAction } from './platform/app/page-actions.ts';
import type { SectionLink } from './platform/app/section-layout.tsx';
import { signOut } from './platform/app/session.ts';
import { paletteTexts } from './platform/app/texts.tsx';
import { chooseTheme } from './platform/app/theme.ts';
import { trpc } from './platform/app/trpc.ts';
import { useSavedViews, useViewOwners, viewLink } from './platform/app/views/saved-views.ts';
import { pageActionTexts, pageTexts, sidebarTexts, themeTexts } from './platform/texts.tsx';
import { CutName } from './platform/ui/cut-name.tsx';
import { Dialog } from './platform/ui/dialog.tsx';
import { useFavourites } from './stacks/favourites.ts';

const maxStacks = 8;

/** Actions of the organization's pages that can be started from everywhere. */
const remoteActions = [
  { name: pageActionTexts.addMember, to: '/$organization/~/members', isForAdmins: true },
  { name: pageActionTexts.inviteMember, to: '/$organization/~/members', isForAdmins: true },
  { name: pageActionTexts.createToken, to: '/$organization/~/tokens', isForAdmins: false },
  { name: pageActionTexts.freezeStacks, to: '/$organization/~/rules', isForAdmins: true },
  { name: pageActionTexts.addWebhook, to: '/$organization/~/webhooks', isForAdmins: true },
] as const;

interface Command {
  readonly id: string;
  readonly group: string;
  readonly name: string;
  readonly icon: ReactNode;
  readonly run: () => void;
}

/** Goes to stacks and pages by their names, with the keyboard alone. */
export default function CommandPalette({
  onClose,
  organization,
}: {
  readonly organization: string | undefined;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const [actions] = useState(listPageActions);
  const commands = useCommands(text.trim(), organization, actions);
  const at = Math.min(chosen, commands.length - 1);
  const run = ({ run }: Command): void => {
    onClose();
    run();
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selection moves.
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  return (
    <Dialog title={paletteTexts.goTo} position="top" isOpen onClose={onClose}>
      <div className={styles['field']}>
        <Search size={17} aria-hidden="true" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="commands"
          aria-activedescendant={commands[at] ? `command-${at}` : undefined}
          aria-label={paletteTexts.field}
          placeholder={paletteTexts.field}
          value={text}
          maxLength={200}
          spellCheck={false}
          autoComplete="off"
          onChange={({ target }) => {
            setText(target.value);
            setChosen(0);
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            const command = commands[at];
            if (step !== undefined) setChosen((at + step + commands.length) % Math.max(commands.length, 1));
            else if (event.key === 'Enter' && command) run(command);
            else return;
            event.preventDefault();
          }}
        />
      </div>
      <div ref={list} id="commands" role="listbox" aria-label={paletteTexts.results} className={styles['list']}>
        {commands.map((command, index) => (
          <div
            key={command.id}
            id={`command-${index}`}
            role="option"
            aria-selected={index === at}
            className={styles['option']}
            data-first={command.group === commands[index - 1]?.group ? undefined : command.group}
            onMouseMove={() => setChosen(index)}
            onClick={() => run(command)}
          >
            {command.icon}
            <CutName text={command.name} className={styles['name']} />
            {command.group === commands[index - 1]?.group ? null : (
              <span className={styles['group']}>{command.group}</span>
            )}
          </div>
        ))}
      </div>
      {commands.length === 0 ? <p className={styles['none']}>{paletteTexts.noResults}</p> : null}
    </Dialog>
  );
}

/** The entries of the palette: stacks from the server's search, everything else by name. */
function useCommands(text: string, organization: string | undefined, actions: readonly string[]): readonly Command[] {
  const navigate = useNavigate();
  const me = useMe();
  const favourites = useFavourites();
  const owners = useViewOwners();
  const views = useSavedViews(owners).items ?? [];
  const deferred = useDeferredValue(text);
  const found = useQuery(
    trpc.stacks.list.queryOptions(
      { ...(organization === undefined ? {} : { organization }), text: deferred, limit: maxStacks },
      { enabled: deferred !== '', placeholderData: keepPreviousData },
    ),
  );
  const stackCommand =
    (group: string, icon: ReactNode) =>
    (stack: StackRef): Command => ({
      id: `${group} ${stack.organization}/${stack.project}/${stack.stack}`,
      group,
      name: `${stack.organization}/${stack.project}/${stack.stack}`,
      icon,
      run: () =>
        void navigate({
          to: '/$organization/$project/$stack',
          params: { organization: stack.organization, project: stack.project, stack: stack.stack },
        }),
    });
  const isAdmin = useMayManage(organization ?? '');
  const toPage = (group: string, icon: ReactNode, { link, name }: SectionLink): Command => ({
    id: `${group} ${name}`,
    ...{ group, name, icon },
    run: () =>
      void navigate({ ...link, ...(organization === undefined ? {} : { params: { organization } }) } as LinkProps),
  });
  const ofOrganization =
    organization === undefined
      ? []
      : [
          toPage(organization, <Workflow size={16} />, { name: pageTexts.ci, link: { to: '/$organization/~/ci' } }),
          toPage(organization, <History size={16} />, {
            name: pageTexts.activity,
            link: { to: '/$organization/~/activity' },
          }),
          toPage(organization, <Waypoints size={16} />, {
            name: pageTexts.references,
            link: { to: '/$organization/~/references' },
          }),
          ...organizationPages(isAdmin).map((page) => toPage(organization, <Building2 size={16} />, page)),
        ];
  const action = (name: string, run: () => void): Command => ({
    id: `action ${name}`,
    ...{ group: paletteTexts.actions, name, icon: <Zap size={16} />, run },
  });
  const elsewhere = remoteActions.filter(
    ({ isForAdmins, name }) =>
      organization !== undefined &&
      (isAdmin || !isForAdmins) &&
      (name !== pageActionTexts.addMember || me?.mayAddMembers === true) &&
      (name !== pageActionTexts.inviteMember || me?.mayAddMembers === false) &&
      !actions.includes(name),
  );
  const fixed: readonly Command[] = [
    ...favourites.map(stackCommand(paletteTexts.favourites, <Star size={16} />)),
    ...views.map((view) => ({
      id: `view ${view.id}`,
      ...{ group: paletteTexts.views, icon: <Bookmark size={16} /> },
      name: owners.length > 1 ? sidebarTexts.viewOf(view.name, view.organization) : view.name,
      run: () => void navigate(viewLink(view)),
    })),
    ...actions.map((name) => action(name, () => runPageAction(name))),
    ...elsewhere.map(({ name, to }) =>
      action(name, () => {
        runPageAction(name);
        void navigate({ to, params: { organization } } as LinkProps);
      }),
    ),
    ...ofOrganization,
    ...(me?.isOperator ? operatorPages.map((page) => toPage(pageTexts.operations, <Activity size={16} />, page)) : []),
    {
      id: 'attention',
      group: paletteTexts.pages,
      name: paletteTexts.whatNeedsAttention,
      icon: <Inbox size={16} />,
      run: () => void navigate({ to: '/~/attention' }),
    },
    {
      id: 'stacks',
      group: paletteTexts.pages,
      name: paletteTexts.stacksOfAll,
      icon: <Layers size={16} />,
      run: () => void navigate({ to: '/' }),
    },
    ...(me?.organizations ?? []).map(({ name }) => ({
      id: `organization ${name}`,
      group: paletteTexts.pages,
      name: paletteTexts.stacksOf(name),
      icon: <Building2 size={16} />,
      run: () => void navigate({ to: '/$organization', params: { organization: name } }),
    })),
    {
      id: 'account',
      group: paletteTexts.pages,
      name: sidebarTexts.yourAccount,
      icon: <UserRound size={16} />,
      run: () => location.assign('/account'),
    },
    {
      id: 'about',
      group: paletteTexts.pages,
      name: sidebarTexts.about,
      icon: <Info size={16} />,
      run: () => void navigate({ to: '/~/about' }),
    },
    {
      id: 'light',
      group: themeTexts.theme,
      name: themeTexts.lightTheme,
      icon: <Sun size={16} />,
      run: () => chooseTheme('light'),
    },
    {
      id: 'dark',
      group: themeTexts.theme,
      name: themeTexts.darkTheme,
      icon: <Moon size={16} />,
      run: () => chooseTheme('dark'),
    },
    {
      id: 'system',
      group: themeTexts.theme,
      name: themeTexts.systemTheme,
      icon: <Monitor size={16} />,
      run: () => chooseTheme('system'),
    },
    {
      id: 'sign-out',
      group: paletteTexts.session,
      name: sidebarTexts.signOut,
      icon: <LogOut size={16} />,
      run: signOut,
    },
  ];
  if (text === '') return fixed;
  const words = text.toLowerCase().split(/\s+/);
  const matching = fixed.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  const search: Command = {
    id: 'search',
    group: paletteTexts.resources,
    name: paletteTexts.searchResources(text),
    icon: <Search size={16} />,
    run: () => void navigate({ to: '/~/search', search: { q: text } }),
  };
  return [
    ...(found.data?.items ?? []).map(stackCommand(paletteTexts.stacks, <Layers size={16} />)),
    ...matching,
    search,
  ];
}
