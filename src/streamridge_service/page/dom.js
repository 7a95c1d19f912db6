// Creates and changes nodes. Unchanged nodes are not touched, so that nothing flickers.

const SVG = "http://www.w3.org/2000/svg";

// All text of the service enters the page here: as text, never as markup.
export function setText(node, text) {
  const value = String(text ?? "");
  if (node.textContent !== value) node.textContent = value;
}

export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

function filled(node, attributes, content) {
  setAttributes(node, attributes);
  if (Array.isArray(content)) node.append(...content);
  else if (content !== undefined) setText(node, content);
  return node;
}

// Returns a new element; its content is a text, or a list of nodes and texts.
export function el(tag, attributes = {}, content = undefined) {
  return filled(document.createElement(tag), attributes, content);
}

export function svg(tag, attributes = {}, content = undefined) {
  return filled(document.createElementNS(SVG, tag), attributes, content);
}

// Adds or removes children of a parent until it has `count`; existing children stay.
export function pool(parent, count, make) {
  while (parent.childElementCount > count) parent.lastElementChild.remove();
  while (parent.childElementCount < count) parent.append(make(parent.childElementCount));
  return Array.from(parent.children);
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

export const byId = (id) => document.getElementById(id);

// Returns a colour of the style sheet for a canvas, in the current theme.
export function color(name) {
  const probe = byId("probe");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

export const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

// Returns a function that runs at once, and then at most once every `milliseconds`.
export function throttled(milliseconds, act) {
  let timer = null;
  let again = false;
  return function run() {
    if (timer !== null) {
      again = true;
      return;
    }
    timer = setTimeout(() => {
      timer = null;
      if (again) {
        again = false;
        run();
      }
    }, milliseconds);
    act();
  };
}
