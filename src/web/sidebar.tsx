import { Link, useMatches, useNavigate } from '@tanstack/react-router';
import {
  Activity,
  ChevronsUpDown,
  Clock,
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
  Users,
} from 'lucide-react';
import { mainPages } from './main-pages.ts';
import { OrganizationSwitch } from './organization-switch.tsx';
import { useMe } from './platform/app/me.ts';
import { signOut } from './platform/app/session.ts';
import { chooseTheme, type Theme, themes, useTheme } from './platform/app/theme.ts';
import { pageTexts, sidebarTexts, themeTexts } from './platform/texts.tsx';
import { Button } from './platform/ui/button.tsx';
import { CutName } from './platform/ui/cut-name.tsx';
import { Menu, MenuItem, MenuSeparator } from './platform/ui/menu.tsx';
import { chooseTimeDisplay, timeDisplayNames, timeDisplays, useTimeDisplay } from './platform/ui/time-display.ts';
import styles from './sidebar.module.css';
import { PinnedViews } from './sidebar-views.tsx';
import { useFavorites } from './stacks/favorites.ts';

const themeIcons = { system: Monitor, light: Sun, dark: Moon } as const satisfies Record<Theme, unknown>;
const themeNames = {
  system: themeTexts.system,
  light: themeTexts.light,
  dark: themeTexts.dark,
} as const satisfies Record<Theme, string>;

/** `onLeave` is called when the user chooses a link. */
export function Sidebar({
  onLeave,
  organization,
}: {
  readonly organization: string | undefined;
  readonly onLeave: () => void;
}) {
  const me = useMe();
  const favorites = useFavorites(me?.login);
  const times = useTimeDisplay();
  const navigate = useNavigate();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: it only handles events of the links in it.
    <div
      className={styles['rail']}
      onClick={({ target }) => ((target as Element).closest('a') ? onLeave() : undefined)}
    >
      <Link to="/" className={styles['brand']}>
        <Mark />
        {sidebarTexts.brand}
      </Link>
      <OrganizationSwitch organization={organization} />
      <nav aria-label={sidebarTexts.pages}>
        <ul className={styles['links']}>
          <li>
            <Link
              to={organization === undefined ? '/~/attention' : '/$organization/~/attention'}
              params={organization === undefined ? {} : { organization }}
              className={styles['link']}
            >
              <Inbox size={16} aria-hidden="true" />
              {pageTexts.needsAttention}
            </Link>
          </li>
          <li>
            <Link
              to={organization === undefined ? '/' : '/$organization'}
              params={organization === undefined ? {} : { organization }}
              className={styles['link']}
              activeOptions={{ exact: true, includeSearch: false }}
            >
              <Layers size={16} aria-hidden="true" />
              {pageTexts.stacks}
            </Link>
          </li>
          <li>
            <Link
              to={organization === undefined ? '/~/search' : '/$organization/~/search'}
              params={organization === undefined ? {} : { organization }}
              className={styles['link']}
              activeOptions={{ includeSearch: false }}
            >
              <Search size={16} aria-hidden="true" />
              {pageTexts.search}
            </Link>
          </li>
          {organization === undefined ? null : <OrganizationLinks organization={organization} />}
          {me?.isOperator ? <OperatorLinks /> : null}
        </ul>
      </nav>
      <PinnedViews />
      {favorites.length === 0 ? null : (
        <nav aria-label={sidebarTexts.favorites} className={styles['favorites']}>
          <h2 className={styles['title']}>{sidebarTexts.favorites}</h2>
          <ul className={styles['links']}>
            {favorites.map((stack) => (
              <li key={`${stack.organization}/${stack.project}/${stack.stack}`}>
                <Link
                  to="/$organization/$project/$stack"
                  params={stack}
                  className={styles['link']}
                  title={`${stack.organization}/${stack.project}/${stack.stack}`}
                >
                  <Star size={14} aria-hidden="true" />
                  <CutName text={`${stack.project}/${stack.stack}`} />
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      )}
      <div className={styles['foot']}>
        <ThemeMenu />
        <Menu
          trigger={
            <Button kind="quiet" className={styles['account']} disabled={me === undefined}>
              <span className={styles['name']}>{me?.displayName ?? me?.login ?? sidebarTexts.account}</span>
              <ChevronsUpDown size={14} aria-hidden="true" />
            </Button>
          }
        >
          <MenuItem icon={<UserRound size={15} />} onSelect={() => location.assign('/account')}>
            {sidebarTexts.yourAccount}
          </MenuItem>
          <MenuSeparator />
          {timeDisplays.map((each) => (
            <MenuItem
              key={each}
              icon={<Clock size={15} />}
              isChosen={each === times}
              onSelect={() => chooseTimeDisplay(each)}
            >
              {timeDisplayNames[each]}
            </MenuItem>
          ))}
          <MenuSeparator />
          <MenuItem icon={<Info size={15} />} onSelect={() => void navigate({ to: '/~/about' })}>
            {sidebarTexts.about}
          </MenuItem>
          <MenuItem icon={<LogOut size={15} />} onSelect={signOut}>
            {sidebarTexts.signOut}
          </MenuItem>
        </Menu>
      </div>
    </div>
  );
}

function OrganizationLinks({ organization }: { readonly organization: string }) {
  const isHere = useMatches().some(({ routeId }) => routeId === '/$organization/~');
  return (
    <>
      {[mainPages.references, mainPages.ci, mainPages.activity].map(({ Icon, link, name }) => (
        <li key={name}>
          <Link
            to={link.to}
            params={{ organization }}
            className={styles['link']}
            activeOptions={{ includeSearch: false }}
          >
            <Icon size={16} aria-hidden="true" />
            {name}
          </Link>
        </li>
      ))}
      <li>
        <Link
          to="/$organization/~/members"
          params={{ organization }}
          className={styles['link']}
          activeProps={{}}
          aria-current={isHere ? 'page' : undefined}
        >
          <Users size={16} aria-hidden="true" />
          {pageTexts.organization}
        </Link>
      </li>
    </>
  );
}

function OperatorLinks() {
  return (
    <li>
      <Link to="/~/operator" className={styles['link']} activeOptions={{ includeSearch: false }}>
        <Activity size={16} aria-hidden="true" />
        {pageTexts.operations}
      </Link>
    </li>
  );
}

function ThemeMenu() {
  const theme = useTheme();
  const Icon = themeIcons[theme];
  return (
    <Menu
      trigger={
        <Button kind="quiet" size="icon" aria-label={themeTexts.chosen(themeNames[theme])} title={themeTexts.theme}>
          <Icon size={16} />
        </Button>
      }
    >
      {themes.map((each) => {
        const EachIcon = themeIcons[each];
        return (
          <MenuItem
            key={each}
            icon={<EachIcon size={15} />}
            isChosen={each === theme}
            onSelect={() => chooseTheme(each)}
          >
            {themeNames[each]}
          </MenuItem>
        );
      })}
    </Menu>
  );
}

/** Three roots that grip a short base line. */
function Mark({ size = 22 }: { readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      aria-hidden="true"
    >
      <path d="M12 3v17.5M12 8.5c0 6-7 4.5-7 12M12 8.5c0 6 7 4.5 7 12M2.5 20.5h19" />
    </svg>
  );
}
