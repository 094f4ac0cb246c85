// Package headgate is a client of Headgate's decision API, with nothing but the standard library.
//
//	limits := headgate.New("http://127.0.0.1:8082")
//	decision := limits.Check(ctx, headgate.Request{
//		Subject: []string{"user:42", "ip:192.0.2.1"}, Method: "POST", Path: "/login",
//	})
//	if !decision.Allowed {
//		decision.WriteHeader(w)
//		return
//	}
//
// When the API does not answer in time, the decision lets the request pass, or rejects it with FailClosed: a limiter that
// is down must not take the service down. Only OpenPerSecond requests pass so in a second, because a client may be the
// reason why the API does not answer in time.
package headgate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

// Request is what is known of a request; or, with Policy or Tier and one subject, what is asked for by name.
type Request struct {
	Subject    []string `json:"-"`
	Method     string   `json:"method,omitempty"`
	Path       string   `json:"path,omitempty"`
	Policy     string   `json:"policy,omitempty"`
	Tier       string   `json:"tier,omitempty"`
	Scope      string   `json:"scope,omitempty"`
	Cost       *int     `json:"cost,omitempty"`
	Refundable bool     `json:"refundable,omitempty"`
}

// MarshalJSON writes one subject as itself: only requests that go by the rules may have several.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	var subject any = r.Subject
	if len(r.Subject) == 1 {
		subject = r.Subject[0]
	}
	return json.Marshal(struct {
		Subject any `json:"subject"`
		plain
	}{subject, plain(r)})
}

// Decision is what the API decided. Status and Headers are ready for the response.
type Decision struct {
	Allowed      bool              `json:"allowed"`
	Status       int               `json:"status"`
	Headers      map[string]string `json:"headers"`
	Source       string            `json:"source"`
	RetryAfterMs *float64          `json:"retryAfterMs"`
	Reference    string            `json:"reference"`
	// Err says why nobody could be asked; the decision then stands for the failure mode.
	Err error `json:"-"`
}

// WriteHeader writes the headers and the status of the decision.
func (d Decision) WriteHeader(w http.ResponseWriter) {
	for name, value := range d.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(d.Status)
}

// Client asks one Headgate. It may be used by many goroutines.
type Client struct {
	URL        string
	Token      string
	FailClosed bool
	// OpenPerSecond is how many requests pass in a second while the API does not answer; 0 stands for 50.
	OpenPerSecond float64
	HTTP          *http.Client

	mutex      sync.Mutex
	tokens     float64
	refilledAt time.Time
}

// New returns a client that waits at most 200 ms.
func New(url string) *Client {
	return &Client{URL: url, HTTP: &http.Client{Timeout: 200 * time.Millisecond}}
}

// Check charges a request.
func (c *Client) Check(ctx context.Context, request Request) Decision {
	return c.decide(ctx, "/v1/check", request)
}

// Peek says what Check would and changes nothing.
func (c *Client) Peek(ctx context.Context, request Request) Decision {
	return c.decide(ctx, "/v1/peek", request)
}

// Refund gives back what a check with Refundable charged, and returns the units that came back.
func (c *Client) Refund(ctx context.Context, reference string) (int, error) {
	var refunded struct {
		Refunded int `json:"refunded"`
	}
	err := c.call(ctx, "/v1/refund", map[string]string{"reference": reference}, &refunded)
	return refunded.Refunded, err
}

func (c *Client) decide(ctx context.Context, path string, request Request) Decision {
	var decision Decision
	if err := c.call(ctx, path, request, &decision); err != nil {
		if c.FailClosed || !c.takeToken() {
			return Decision{Status: 503, Headers: map[string]string{"Retry-After": "1"}, Source: "closed", Err: err}
		}
		return Decision{Allowed: true, Status: 200, Source: "open", Err: err}
	}
	return decision
}

func (c *Client) takeToken() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	perSecond := c.OpenPerSecond
	if perSecond == 0 {
		perSecond = 50
	}
	now := time.Now()
	c.tokens = math.Min(perSecond, c.tokens+now.Sub(c.refilledAt).Seconds()*perSecond)
	c.refilledAt = now
	if c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

func (c *Client) call(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var problem struct {
			Detail string `json:"detail"`
		}
		_ = json.NewDecoder(res.Body).Decode(&problem)
		return fmt.Errorf("headgate: %d: %s", res.StatusCode, problem.Detail)
	}
	return json.NewDecoder(res.Body).Decode(answer)
}
